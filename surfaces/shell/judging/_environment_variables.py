"""Environment variables that change the behaviour of programs."""

from __future__ import annotations

import re

from callboard.surfaces.shell.judging._word_expansion import UnclearError

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
"""The search path of programs, for all commands."""
_DANGEROUS = re.compile(
    r"(?:BASH|LD_|GIT_|PYTHON|PERL|RUBY|NODE_|JAVA|JDK_|GREP_|RIPGREP|LESS|MAN|GCONV|NLS|LOC|LC_|LANG|XDG_|SSH|GPG|GNUPG"
    r"|MALLOC|GLIBC|TAR_|GZIP|ZIP|XZ_|BZIP|JQ_|AWK|GAWK|CDPATH|POSIXLY|SHELL|PROMPT|HIST|DEBUGINFOD|ASAN|LSAN|UBSAN|ZSH"
    r"|KSH|PAGER|EDITOR|VISUAL|BROWSER|PATH$|IFS$|ENV$|HOME$|PWD$|OLDPWD$|PS[0-4]$|OPT|EXECIGNORE|GLOBIGNORE|FIGNORE|FUNC"
    r"|TMP|TEMP|MAGIC$|TERMINFO|TERMCAP|RES_|HOSTALIASES|TZDIR|DIRSTACK|RANDOM|SECONDS|LINENO|COMP_|READLINE|MAP"
    r"|REPLY|UID$|EUID$|GROUPS|PPID|MACHTYPE|HOSTTYPE|OSTYPE|IGNOREEOF|INPUTRC|MAIL|TMOUT|TIMEFORMAT|COPROC|histchars"
    r"|auto_resume|place$|command$|OPENSSL|SSL_|PS_|MAWK|NSS_|KRB5|[a-z]*_proxy|[A-Z]*_PROXY|BLOCK|BLOCKSIZE|DF_|DU_|LS_|QUOTING|TIME_STYLE|TABSIZE|_)"
)
_HARMLESS = {
    "LANG": re.compile(r"[\w.@-]*"),
    "LANGUAGE": re.compile(r"[\w.@:-]*"),
    "PAGER": re.compile("cat"),
    "GIT_PAGER": re.compile("cat"),
    "BLOCKSIZE": re.compile(r"\w*"),
    "LS_COLORS": re.compile(r"[\w.*=;:-]*"),
    "GREP_COLORS": re.compile(r"[\w=;:]*"),
    **{f"LC_{name}": re.compile(r"[\w.@-]*") for name in ("ALL", "CTYPE", "COLLATE", "MESSAGES", "NUMERIC", "TIME")},
}


def check_variable(name: str, value: str) -> None:
    """Refuse a variable that may change the behaviour of programs.

    Raises:
        UnclearError: If it may.
    """
    harmless = _HARMLESS.get(name)
    if harmless is not None and harmless.fullmatch(value):
        return
    if harmless is not None or _DANGEROUS.match(name):
        msg = f"the variable {name} may change the behaviour of programs"
        raise UnclearError(msg)
