"""The programs that only read, each with the options and operands with which it does.

An option that is not here makes a person be asked: some versions of a program may write with it, or start another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.servers.shell._options import Given, Usage, given
from callboard.actors.servers.shell._scripts import jq_filter
from callboard.actors.servers.shell._words import UnclearError, Word

if TYPE_CHECKING:
    from callboard.actors.servers.shell._touched import Touched

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

READS: dict[str, Usage] = {
    "arch": Usage(operands="none"),
    "base64": Usage("-di -w: --decode --ignore-garbage --wrap:"),
    "basename": Usage("-az -s: --multiple --suffix: --zero", "texts"),
    "cat": Usage(
        "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting"
        " --help --version"
    ),
    "cksum": Usage(),
    "cmp": Usage("-bls -i: -n: --print-bytes --ignore-initial: --verbose --bytes: --quiet --silent"),
    "column": Usage("-txe -s: -o: -c: -N: --table --separator: --output-separator: --table-columns: --json"),
    "comm": Usage("-123z --check-order --nocheck-order --output-delimiter: --total --zero-terminated"),
    "cut": Usage(
        "-b: -c: -d: -f: -snz --bytes: --characters: --delimiter: --fields: --complement --only-delimited"
        " --output-delimiter: --zero-terminated"
    ),
    "date": Usage(
        "-uR -d: -r< -I? --date: --utc --universal --rfc-email --rfc-3339: --iso-8601? --reference<", "+text"
    ),
    "df": Usage("-ahHiklTP -t: -x: --all --human-readable --si --inodes --local --portability --print-type --total"),
    "diff": Usage(
        "-abBcdeiHnNpqrstTuwyEZ -C: -U: -W: -x: -I: -L: --brief --normal --context? --unified? --side-by-side --width:"
        " --suppress-common-lines --recursive --new-file --ignore-case --ignore-all-space --ignore-space-change"
        " --ignore-blank-lines --ignore-trailing-space --exclude: --color? --text --minimal --stat --label:"
        " --strip-trailing-cr --report-identical-files --show-c-function --expand-tabs",
        follows=True,
    ),
    "dirname": Usage("-z --zero", "texts"),
    "du": Usage(
        "-0abchkmsSx -d: -t: -B: -LD@ --all --apparent-size --block-size: --bytes --total --max-depth: --human-readable"
        " --summarize --separate-dirs --one-file-system --exclude: --time? --threshold: --si --dereference@",
        here=True,
    ),
    "egrep": Usage(_GREP, "text files", instead=_INSTEAD),
    "expand": Usage("-i -t: --initial --tabs:"),
    "false": Usage(operands="texts"),
    "fgrep": Usage(_GREP, "text files", instead=_INSTEAD),
    "file": Usage("-bhiLNrk0 -F: --brief --mime --mime-type --mime-encoding --separator: --no-pad --extension"),
    "fmt": Usage("-csu -w: -# --width:"),
    "fold": Usage("-bs -w: --bytes --spaces --width:"),
    "free": Usage("-bkmghtw --bytes --kibi --mebi --gibi --human --total --wide", "none"),
    "grep": Usage(_GREP, "text files", instead=_INSTEAD),
    "head": Usage("-qvz -n: -c: -# --lines: --bytes: --quiet --silent --verbose --zero-terminated"),
    "hexdump": Usage("-bcCdovx -n: -s: -e: --canonical --length: --skip: --no-squeezing"),
    "hostname": Usage("-sI --short", "none"),
    "id": Usage("-aGgnruz --user --group --groups --name --real --zero", "texts"),
    "join": Usage("-i -a: -e: -j: -o: -t: -v: -1: -2: --ignore-case --check-order --nocheck-order --header"),
    "jq": Usage(
        "-rcnsSaejMC --raw-output --compact-output --null-input --slurp --sort-keys --ascii-output --exit-status"
        " --join-output --monochrome-output --color-output --tab --indent: --raw-input -R",
        "text files",
    ),
    "ls": Usage(
        "-aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZ1 -L@ -I: -w: -T: --all --almost-all --author --escape --block-size:"
        " --ignore-backups --color? --directory --classify? --file-type --format: --full-time --group-directories-first"
        " --no-group --human-readable --si --hide: --hyperlink? --indicator-style: --inode --ignore: --dereference@"
        " --numeric-uid-gid --literal --quote-name --quoting-style: --reverse --recursive --size --sort: --time:"
        " --time-style: --width: --zero --context --help --version",
        here=True,
    ),
    "md5sum": Usage(_SUM),
    "nl": Usage("-b: -d: -f: -h: -i: -l: -n: -p -s: -v: -w: --body-numbering: --number-format: --number-width:"),
    "nproc": Usage("--all --ignore:", "none"),
    "numfmt": Usage("-d: --from: --to: --field: --format: --padding: --suffix: --header? --delimiter:", "texts"),
    "od": Usage(
        "-abcdfiloxsv -A: -j: -N: -t: -w? --address-radix: --skip-bytes: --read-bytes: --format: --width? --endian:"
        " --output-duplicates"
    ),
    "paste": Usage("-sz -d: --delimiters: --serial --zero-terminated"),
    "pwd": Usage("-LP", "none"),
    "readlink": Usage("-efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --zero"),
    "realpath": Usage(
        "-eLmPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --strip --no-symlinks"
        " --zero --relative-to< --relative-base<"
    ),
    "rev": Usage(),
    "rg": Usage(
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
    "seq": Usage("-w -f: -s: -# --equal-width --format: --separator:", "texts"),
    "sha1sum": Usage(_SUM),
    "sha224sum": Usage(_SUM),
    "sha256sum": Usage(_SUM),
    "sha384sum": Usage(_SUM),
    "sha512sum": Usage(_SUM),
    "sleep": Usage(operands="texts"),
    "sort": Usage(
        "-bdfgiMhnRrVcCmsuz -k: -S: -t: -o> --ignore-leading-blanks --dictionary-order --ignore-case"
        " --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort"
        " --reverse --sort: --version-sort --check? --merge --stable --unique --zero-terminated --key: --buffer-size:"
        " --field-separator: --output> --parallel: --debug --help --version"
    ),
    "stat": Usage("-Lft -c: --dereference --file-system --format: --printf: --terse"),
    "sum": Usage("-rs --sysv"),
    "tac": Usage("-br -s: --before --regex --separator:"),
    "tail": Usage(
        "-fFqvz -n: -c: -s: -# --lines: --bytes: --follow? --retry --quiet --silent --verbose --sleep-interval:"
        " --zero-terminated --pid:"
    ),
    "tr": Usage("-cCdst --complement --delete --squeeze-repeats --truncate-set1", "texts"),
    "tree": Usage(
        "-adfiqpsughDFrtvCnJX -L: -P: -I: --noreport --dirsfirst --du --prune --filelimit: --sort? --charset:"
        " --gitignore",
        here=True,
        single=True,
    ),
    "true": Usage(operands="texts"),
    "tty": Usage("-s", "none"),
    "type": Usage("-afptP", "texts"),
    "uname": Usage("-amnorspiv --all --kernel-name --nodename --kernel-release --machine --operating-system", "none"),
    "unexpand": Usage("-a -t: --all --first-only --tabs:"),
    "uniq": Usage(
        "-cdDiuz -f: -s: -w: --count --repeated --all-repeated? --skip-fields: --group? --ignore-case --skip-chars:"
        " --unique --zero-terminated --check-chars:",
        "in out",
    ),
    "uptime": Usage("-ps --pretty --since", "none"),
    "wc": Usage("-clLmw --bytes --chars --lines --max-line-length --words --total: --help --version"),
    "which": Usage("-as", "texts"),
    "whoami": Usage(operands="none"),
    "xxd": Usage("-a -b -C -e -E -i -p -r -u -c: -g: -l: -o: -s:", "in out", single=True),
}
"""By the program's name."""


def reads(name: str, words: list[Word], touched: Touched) -> None:
    """Note what a program of the table does with its words.

    Raises:
        UnclearError: If that can't be told.
    """
    usage = READS[name]
    found = given(usage, words)
    for option, value in found.options:
        end = usage.table[option]
        if value is not None and end == "<":
            touched.read(value)
        if value is not None and end == ">":
            touched.write(value, repeatable=False)
    if name == "jq" and found.operands:
        jq_filter(found.operands[0].literal)
    _operands(name, usage, found, touched)


def _operands(name: str, usage: Usage, found: Given, touched: Touched) -> None:
    files, kind = list(found.operands), usage.operands
    if kind == "text files" and files and not found.has(*usage.instead.split()):
        text = files.pop(0)
        if text.glob or text.split:
            raise UnclearError(several(text))
    if kind == "texts" or (kind == "+text" and all(word.text.startswith("+") for word in files)):
        return
    if kind in {"none", "+text"} and files:
        msg = f"{name} may change something with {files[0].text!r}"
        raise UnclearError(msg)
    if kind == "in out":
        files = _in_out(name, found, touched)
    follows = usage.follows or any(usage.table[option] == "@" for option, _ in found.options)
    for word in (*files, *found.doubtful):
        touched.read(word, follows=follows)
    searches = name in {"grep", "egrep", "fgrep"} and found.has(
        "-r", "-R", "--recursive", "--dereference-recursive", "-d", "--directories"
    )
    if not files and (usage.here or searches):
        touched.here(follows=follows)


def _in_out(name: str, found: Given, touched: Touched) -> list[Word]:
    """Note the second of two files, which is written, and give the first."""
    if found.mixed or len(found.operands) > 2 or any(word.glob for word in found.operands):  # of two
        msg = f"it can't be told which file {name} writes"
        raise UnclearError(msg)
    for target in found.operands[1:]:
        touched.write(target, repeatable=True)
    return found.operands[:1]


def several(word: Word) -> str:
    """Say that a pattern may stand for more than one word."""
    return f"{word.text!r} may stand for several files"
