"""Programs that only read, with their known options and operands.

An option that is not listed here needs an approval: some versions of a program may write with it, or start another
program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.surfaces.shell.judging._option_parsing import ParsedOptions, ProgramUsage, parse_options
from callboard.surfaces.shell.judging._scripts import jq_filter
from callboard.surfaces.shell.judging._word_expansion import UnclearError, Word

if TYPE_CHECKING:
    from callboard.surfaces.shell.judging._touched_files import Touched

_GREP = (
    "-EFGPiyvwxcLloqsbHhnTZzarIU -e: -f< -m: -A: -B: -C: -d: -D: -R@ -# --extended-regexp --fixed-strings"
    " --basic-regexp --perl-regexp --regexp: --file< --ignore-case --no-ignore-case --invert-match --word-regexp"
    " --line-regexp --count --color? --colour? --files-with-matches --files-without-match --max-count: --only-matching"
    " --quiet --silent --no-messages --byte-offset --with-filename --no-filename --label: --line-number --initial-tab"
    " --null --after-context: --before-context: --context: --text --binary-files: --devices: --directories: --exclude:"
    " --exclude-from< --exclude-dir: --include: --recursive --dereference-recursive@ --null-data --version --help"
)
_INSTEAD = "-e -f --regexp --file"
_SUM = "-btz --binary --tag --text --zero --help --version"

READS: dict[str, ProgramUsage] = {
    "arch": ProgramUsage(operands="none"),
    "base64": ProgramUsage("-di -w: --decode --ignore-garbage --wrap:"),
    "basename": ProgramUsage("-az -s: --multiple --suffix: --zero", "texts"),
    "cat": ProgramUsage(
        "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting"
        " --help --version"
    ),
    "cksum": ProgramUsage(),
    "cmp": ProgramUsage("-bls -i: -n: --print-bytes --ignore-initial: --verbose --bytes: --quiet --silent"),
    "column": ProgramUsage("-txe -s: -o: -c: -N: --table --separator: --output-separator: --table-columns: --json"),
    "comm": ProgramUsage("-123z --check-order --nocheck-order --output-delimiter: --total --zero-terminated"),
    "cut": ProgramUsage(
        "-b: -c: -d: -f: -snz --bytes: --characters: --delimiter: --fields: --complement --only-delimited"
        " --output-delimiter: --zero-terminated"
    ),
    "date": ProgramUsage(
        "-uR -d: -r< -I? --date: --utc --universal --rfc-email --rfc-3339: --iso-8601? --reference<", "+text"
    ),
    "df": ProgramUsage(
        "-ahHiklTP -t: -x: --all --human-readable --si --inodes --local --portability --print-type --total"
    ),
    "diff": ProgramUsage(
        "-abBcdeiHnNpqrstTuwyEZ -C: -U: -W: -x: -I: -L: --brief --normal --context? --unified? --side-by-side --width:"
        " --suppress-common-lines --recursive --new-file --ignore-case --ignore-all-space --ignore-space-change"
        " --ignore-blank-lines --ignore-trailing-space --exclude: --color? --text --minimal --stat --label:"
        " --strip-trailing-cr --report-identical-files --show-c-function --expand-tabs",
        follows=True,
    ),
    "dirname": ProgramUsage("-z --zero", "texts"),
    "du": ProgramUsage(
        "-0abchkmsSx -d: -t: -B: -LD@ --all --apparent-size --block-size: --bytes --total --max-depth: --human-readable"
        " --summarize --separate-dirs --one-file-system --exclude: --time? --threshold: --si --dereference@",
        here=True,
    ),
    "egrep": ProgramUsage(_GREP, "text files", instead=_INSTEAD),
    "expand": ProgramUsage("-i -t: --initial --tabs:"),
    "false": ProgramUsage(operands="texts"),
    "fgrep": ProgramUsage(_GREP, "text files", instead=_INSTEAD),
    "file": ProgramUsage("-bhiLNrk0 -F: --brief --mime --mime-type --mime-encoding --separator: --no-pad --extension"),
    "fmt": ProgramUsage("-csu -w: -# --width:"),
    "fold": ProgramUsage("-bs -w: --bytes --spaces --width:"),
    "free": ProgramUsage("-bkmghtw --bytes --kibi --mebi --gibi --human --total --wide", "none"),
    "grep": ProgramUsage(_GREP, "text files", instead=_INSTEAD),
    "head": ProgramUsage("-qvz -n: -c: -# --lines: --bytes: --quiet --silent --verbose --zero-terminated"),
    "hexdump": ProgramUsage("-bcCdovx -n: -s: -e: --canonical --length: --skip: --no-squeezing"),
    "hostname": ProgramUsage("-sI --short", "none"),
    "id": ProgramUsage("-aGgnruz --user --group --groups --name --real --zero", "texts"),
    "join": ProgramUsage("-i -a: -e: -j: -o: -t: -v: -1: -2: --ignore-case --check-order --nocheck-order --header"),
    "jq": ProgramUsage(
        "-rcnsSaejMC --raw-output --compact-output --null-input --slurp --sort-keys --ascii-output --exit-status"
        " --join-output --monochrome-output --color-output --tab --indent: --raw-input -R",
        "text files",
    ),
    "ls": ProgramUsage(
        "-aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZ1 -L@ -I: -w: -T: --all --almost-all --author --escape --block-size:"
        " --ignore-backups --color? --directory --classify? --file-type --format: --full-time --group-directories-first"
        " --no-group --human-readable --si --hide: --hyperlink? --indicator-style: --inode --ignore: --dereference@"
        " --numeric-uid-gid --literal --quote-name --quoting-style: --reverse --recursive --size --sort: --time:"
        " --time-style: --width: --zero --context --help --version",
        here=True,
    ),
    "md5sum": ProgramUsage(_SUM),
    "nl": ProgramUsage("-b: -d: -f: -h: -i: -l: -n: -p -s: -v: -w: --body-numbering: --number-format: --number-width:"),
    "nproc": ProgramUsage("--all --ignore:", "none"),
    "numfmt": ProgramUsage("-d: --from: --to: --field: --format: --padding: --suffix: --header? --delimiter:", "texts"),
    "od": ProgramUsage(
        "-abcdfiloxsv -A: -j: -N: -t: -w? --address-radix: --skip-bytes: --read-bytes: --format: --width? --endian:"
        " --output-duplicates"
    ),
    "paste": ProgramUsage("-sz -d: --delimiters: --serial --zero-terminated"),
    "pwd": ProgramUsage("-LP", "none"),
    "readlink": ProgramUsage(
        "-efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --zero"
    ),
    "realpath": ProgramUsage(
        "-eLmPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --strip --no-symlinks"
        " --zero --relative-to< --relative-base<"
    ),
    "rev": ProgramUsage(),
    "rg": ProgramUsage(
        "-iSsvwxclnNoqFUPHIua0. -L@ --follow@ -e: -f< -g: -t: -T: -m: -A: -B: -C: -d: -r: -M: -j: -E: --regexp:"
        " --file< --glob: --iglob: --type: --type-not: --max-count: --after-context: --before-context: --context:"
        " --max-depth: --replace: --ignore-case --smart-case --case-sensitive --invert-match --word-regexp"
        " --line-regexp --count --count-matches --files-with-matches --files-without-match --line-number"
        " --no-line-number --only-matching --quiet --fixed-strings --multiline --pcre2 --with-filename --no-filename"
        " --no-ignore --hidden --text --null --files --heading --no-heading --json --stats --sort: --color: --column"
        " --trim"
        " --vimgrep --no-config",
        "text files",
        here=True,
        instead="-e -f --regexp --file --files",
    ),
    "seq": ProgramUsage("-w -f: -s: -# --equal-width --format: --separator:", "texts"),
    "sha1sum": ProgramUsage(_SUM),
    "sha224sum": ProgramUsage(_SUM),
    "sha256sum": ProgramUsage(_SUM),
    "sha384sum": ProgramUsage(_SUM),
    "sha512sum": ProgramUsage(_SUM),
    "sleep": ProgramUsage(operands="texts"),
    "sort": ProgramUsage(
        "-bdfgiMhnRrVcCmsuz -k: -S: -t: -o> --ignore-leading-blanks --dictionary-order --ignore-case"
        " --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort"
        " --reverse --sort: --version-sort --check? --merge --stable --unique --zero-terminated --key: --buffer-size:"
        " --field-separator: --output> --parallel: --debug --help --version"
    ),
    "stat": ProgramUsage("-Lft -c: --dereference --file-system --format: --printf: --terse"),
    "sum": ProgramUsage("-rs --sysv"),
    "tac": ProgramUsage("-br -s: --before --regex --separator:"),
    "tail": ProgramUsage(
        "-fFqvz -n: -c: -s: -# --lines: --bytes: --follow? --retry --quiet --silent --verbose --sleep-interval:"
        " --zero-terminated --pid:"
    ),
    "tr": ProgramUsage("-cCdst --complement --delete --squeeze-repeats --truncate-set1", "texts"),
    "tree": ProgramUsage(
        "-adfiqpsughDFrtvCnJX -L: -P: -I: --noreport --dirsfirst --du --prune --filelimit: --sort? --charset:"
        " --gitignore",
        here=True,
        single=True,
    ),
    "true": ProgramUsage(operands="texts"),
    "tty": ProgramUsage("-s", "none"),
    "type": ProgramUsage("-afptP", "programs"),
    "uname": ProgramUsage(
        "-amnorspiv --all --kernel-name --nodename --kernel-release --machine --operating-system", "none"
    ),
    "unexpand": ProgramUsage("-a -t: --all --first-only --tabs:"),
    "uniq": ProgramUsage(
        "-cdDiuz -f: -s: -w: --count --repeated --all-repeated? --skip-fields: --group? --ignore-case --skip-chars:"
        " --unique --zero-terminated --check-chars:",
        "in out",
    ),
    "uptime": ProgramUsage("-ps --pretty --since", "none"),
    "wc": ProgramUsage("-clLmw --bytes --chars --lines --max-line-length --words --total: --help --version"),
    "which": ProgramUsage("-as", "programs"),
    "whoami": ProgramUsage(operands="none"),
    "xxd": ProgramUsage("-a -b -C -e -E -i -p -r -u -c: -g: -l: -o: -s:", "in out", single=True),
}
"""Options and operands by program name."""


def reads(name: str, words: list[Word], touched: Touched) -> None:
    """Record the effects of a program of the table.

    Raises:
        UnclearError: If its effects are unknown.
    """
    usage = READS[name]
    arguments = parse_options(usage, words)
    for option, value in arguments.options:
        end = usage.table[option]
        if value is not None and end == "<":
            touched.read(value)
        if value is not None and end == ">":
            touched.write(value, repeatable=False)
    if name == "jq" and arguments.operands:
        jq_filter(arguments.operands[0].literal)
    _operands(name, usage, arguments, touched)


def _operands(name: str, usage: ProgramUsage, arguments: ParsedOptions, touched: Touched) -> None:
    files, kind = list(arguments.operands), usage.operands
    if kind == "text files" and files and not arguments.has(*usage.instead.split()):
        text = files.pop(0)
        if text.glob or text.split:
            raise UnclearError(several(text))
    if kind == "texts" or (kind == "+text" and all(word.text.startswith("+") for word in files)):
        return
    if kind == "programs":
        files = [word for word in files if not word.known or "/" in word.text]
    if kind in {"none", "+text"} and files:
        msg = f"{name} may change something with {files[0].text!r}"
        raise UnclearError(msg)
    if kind == "in out":
        files = _in_out(name, arguments, touched)
    follows = usage.follows or any(usage.table[option] == "@" for option, _ in arguments.options)
    for word in (*files, *arguments.doubtful):
        touched.read(word, follows=follows)
    searches = name in {"grep", "egrep", "fgrep"} and arguments.has(
        "-r", "-R", "--recursive", "--dereference-recursive", "-d", "--directories"
    )
    if not files and (usage.here or searches):
        touched.here(follows=follows)


def _in_out(name: str, arguments: ParsedOptions, touched: Touched) -> list[Word]:
    """Record a write to the second operand, and return the first."""
    if arguments.mixed or len(arguments.operands) > 2 or any(word.glob for word in arguments.operands):  # of two
        msg = f"it is unknown which file {name} writes"
        raise UnclearError(msg)
    for target in arguments.operands[1:]:
        touched.write(target, repeatable=True)
    return arguments.operands[:1]


def several(word: Word) -> str:
    """Format the reason for refusing a pattern that may match several files."""
    return f"{word.text!r} may match several files"
