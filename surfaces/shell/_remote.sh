#!/bin/sh
# Callboard's script on a machine that is reached over SSH. It runs commands and accesses files there. A call is
#
#     sh THIS OPERATION ARGUMENT...
#
# `serve` keeps one process for all calls of a connection, which starts the user's login shell once.
#
# Each command has a folder. The folder has `begun`, a link whose target is the process id and the start time of the
# command's runner; `out` and `err`, the first bytes of the outputs; and `ended` once the command has ended. An
# operation that can't be done exits with 3 and prints the reason to stderr. The script needs a POSIX shell, bash for
# the commands, and /proc.

umask 077
LC_ALL=C
export LC_ALL
here=$0

fail() {
    printf '%s\n' "$*" >&2
    exit 3
}

# started PID: print the start time of a running process; nothing for others.
started() {
    sed -n 's/^.*) \([^ZX]\)/\1/p' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20
}

size() {
    if [ -e "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi
}

# ---- operations

# serve END: read operations from stdin, and run them in turn. A line has a word that ends the answer, the size of the
# operation with its arguments in bytes, and the size of its input; both follow. The answer is the operation's stdout
# and stderr, each with a line break and the word at its end, on stdout also the exit code.
serve() {
    exec 3<&0
    printf '\n%s 0\n' "$1"
    printf '\n%s\n' "$1" >&2
    while read -r end words data <&3; do
        request=$(take "$words" && echo .)
        request=${request%.}
        [ "${#request}" -eq "$words" ] || exit 1 # the connection was cut
        eval "set -- $request"
        if [ "$data" = 0 ]; then
            ${BASH:-sh} "$here" "$@" </dev/null
        else # all of the input, or the next operation would be searched in it
            take "$data" | { ${BASH:-sh} "$here" "$@"; code=$?; cat >/dev/null; exit $code; }
        fi
        code=$?
        printf '\n%s %s\n' "$end" "$code"
        printf '\n%s\n' "$end" >&2
    done
}

# take BYTES: print so many bytes of the input for operations.
take() {
    dd bs="$1" count=1 iflag=fullblock <&3 2>/dev/null
}

# ---- commands

# Print the stage of the command in this folder.
stage() {
    [ -e ended ] && { echo ended; return; }
    [ -L begun ] || { echo absent; return; }
    holder=$(readlink begun)
    case $holder in "called off" | cancelled) echo absent; return ;; esac
    if [ "$(started "${holder%% *}")" = "${holder#* }" ]; then
        echo running
    elif [ -e ended ]; then
        echo ended
    else
        echo lost
    fi
}

# begin FOLDER SECONDS MOST TAIL MARK CWD BYTES: start the command whose script for bash is on stdin, unless it was
# started or cancelled before, or a lost connection has truncated its script.
begin() {
    [ -d "$6" ] || fail "there is no folder $6"
    command -v bash >/dev/null || fail "there is no bash"
    [ "$(readlink "$1/begun" 2>/dev/null)" = "called off" ] && rm -rf "$1"
    [ -L "$1/begun" ] && return
    mkdir -p "$1" && cat >"$1/script" && echo "$5" >"$1/mark" || fail "$1 can't be written"
    [ "$(size "$1/script")" = "$7" ] || { rm -f "$1/script"; fail "the command arrived incomplete, and was not run"; }
    detach=$(command -v setsid)
    $detach sh "$here" hold "$@" </dev/null >/dev/null 2>&1 &
    cd "$1" || exit 1
    rounds=0
    while [ ! -L begun ]; do
        rounds=$((rounds + 1))
        [ $rounds -gt 500 ] && fail "the command does not start"
        sleep 0.02
    done
    [ "$(stage)" != absent ] || rm -f script
}

# hold FOLDER SECONDS MOST TAIL MARK: run the command to its end, and kill its child processes.
hold() {
    cd "$1" || exit 1
    seconds=$2 most=$3 tail=$4 mark=$5 why='' code='' left=0
    trap 'why=cancelled' TERM
    trap 'why="timed out"' USR1
    trap '' HUP INT
    ln -s "$$ $(started $$)" begun 2>/dev/null || exit 0
    begin=$(date +%s)
    mkfifo out.pipe err.pipe
    keep out &
    keep err &
    detach=$(command -v setsid)
    env -i "CALLBOARD_COMMAND=$mark" PATH="$PATH" HOME="$HOME" $detach bash --noprofile --norc ./script \
        </dev/null >out.pipe 2>err.pipe &
    child=$!
    ( # the timer ends with the command's processes if this one is killed, and never signals a reused process id
        trap - TERM USR1
        CALLBOARD_COMMAND="$mark" sleep "$seconds" && [ "$(readlink begun)" = "$$ $(started $$)" ] && kill -USR1 $$
    ) >/dev/null 2>&1 &
    timer=$!
    while [ -z "$why" ]; do
        wait "$child"
        code=$?
        [ -n "$why" ] || kill -0 "$child" 2>/dev/null || break
    done
    trap '' TERM USR1
    kill -STOP "$timer" 2>/dev/null # or it might start its `sleep` after the next line
    timers="$timer $(cat "/proc/$timer/task/$timer/children" 2>/dev/null)"
    kill -KILL $timers 2>/dev/null
    for pid in $timers; do # they have the command's mark, and would be counted
        rounds=0
        while [ -n "$(started "$pid")" ] && [ $rounds -lt 500 ]; do
            rounds=$((rounds + 1))
            sleep 0.01
        done
    done
    [ -n "$why" ] && code=''
    [ -z "$why" ] && [ -n "$(marked "$mark")" ] && sleep 0.05 # for processes that are about to end by themselves
    end_marked "$mark"
    kill -KILL "-$child" 2>/dev/null
    rounds=0
    while [ ! -e out.total ] || [ ! -e err.total ]; do
        rounds=$((rounds + 1))
        [ $rounds -gt 100 ] && break
        sleep 0.02
    done
    printf '%s|%s|%s|%s\n' "$code" "$why" "$left" "$(($(date +%s) - begin))" >ended.new
    mv ended.new ended
}

# marked MARK: print the ids of a command's processes. Detached ones too have the mark in their environment.
marked() {
    grep -lsF "CALLBOARD_COMMAND=$1" /proc/[0-9]*/environ | sed 's:^/proc/::; s:/environ$::'
}

# end_marked MARK: kill all processes of a command, and count them. They are stopped first, so that none can start
# another one meanwhile.
end_marked() {
    rounds=0
    while [ $rounds -lt 500 ]; do
        pids=$(marked "$1")
        [ -n "$pids" ] || return 0
        [ $rounds = 0 ] && left=$(printf '%s\n' "$pids" | wc -l | tr -d ' ')
        kill -STOP $pids 2>/dev/null
        kill -KILL $pids 2>/dev/null
        rounds=$((rounds + 1))
    done
}

# keep NAME: write the first bytes of an output as they arrive, and the last ones at its end, and count all.
keep() {
    exec <"$1.pipe"
    total=0
    while dd bs=65536 count=1 of="$1.chunk" 2>/dev/null && [ -s "$1.chunk" ]; do
        cat "$1.chunk" >>"$1"
        total=$((total + $(size "$1.chunk")))
        [ $total -ge "$most" ] && break
    done
    mkfifo "$1.rest"
    tail -c "$tail" <"$1.rest" >"$1.tail" &
    more=$(tee "$1.rest" | wc -c)
    wait
    echo $((total + more)) >"$1.new"
    mv "$1.new" "$1.total"
    rm -f "$1.chunk" "$1.rest" "$1.pipe"
}

# look FOLDER HEAD TAIL: print the stage, and the first HEAD and last TAIL bytes of both outputs. The first line is the
# stage, the second one the content of `ended`, the third one the sizes of the parts that follow: for each output the
# first bytes, the last bytes and the total, then the final working directory and environment of the command.
look() {
    cd "$1" 2>/dev/null || { printf 'absent\n\n0 0 0 0 0 0 0 0\n'; return; }
    stage=$(stage)
    sizes=''
    for name in out err; do
        whole=$(size $name)
        [ "$whole" -gt "$2" ] && whole=$2
        { tail -c "$3" $name; cat $name.tail; } 2>/dev/null | tail -c "$3" >$name.$$
        all=$(cat $name.total 2>/dev/null || size $name)
        sizes="$sizes$whole $(size $name.$$) $all "
    done
    printf '%s\n%s\n%s\n' "$stage" "$(cat ended 2>/dev/null)" "$sizes$(size cwd) $(size env)"
    for name in out err; do
        head -c "$2" $name 2>/dev/null
        cat $name.$$
        rm -f $name.$$
    done
    cat cwd env 2>/dev/null
    return 0
}

# wait FOLDER SECONDS HEAD TAIL: wait for the command's end at most so long, and only until the next operation arrives;
# then do as `look`.
await() {
    (
        cd "$1" 2>/dev/null || exit 0
        end=$(($(date +%s) + $2))
        while [ "$(stage)" = running ] && [ "$(date +%s)" -lt $end ] && ! waiting; do
            sleep 0.03
        done
    )
    look "$1" "$3" "$4"
}

# waiting: succeed if another operation has arrived. Only bash can tell; others serve it after this one.
waiting() {
    [ -n "$BASH_VERSION" ] && read -r -t 0 -u 3 2>/dev/null
}

# cancel FOLDER: kill the command, or prevent its start.
cancel() {
    mkdir -p "$1" && cd "$1" || exit 1
    ln -s cancelled begun 2>/dev/null && return
    holder=$(readlink begun)
    case $(stage) in
        running) kill -TERM "${holder%% *}" ;;
        lost) [ -s mark ] && end_marked "$(cat mark)" ;;
    esac
    return 0
}

# call_off FOLDER HOW: prevent the command's start; print `no` if it has started. A later call may start a command that
# is `called off`, but not one that is `cancelled`: that call may be on its way already.
call_off() {
    mkdir -p "$1" && cd "$1" || exit 1
    [ "$(readlink begun)" = cancelled ] && rm -f begun
    ln -s "$2" begun 2>/dev/null
    if [ "$(readlink begun)" = "$2" ]; then echo yes; else echo no; fi
}

# end_all PLACE SECONDS: kill all commands of a folder, and wait at most so long; print `no` if some still run.
end_all() {
    [ -d "$1" ] || { echo yes; return; }
    for folder in "$1"/*/; do
        [ -d "$folder" ] && (cancel "$folder")
    done
    end=$(($(date +%s) + $2))
    while :; do
        running=no
        for folder in "$1"/*/; do
            [ "$(cd "$folder" 2>/dev/null && stage)" = running ] && running=yes
        done
        [ $running = no ] && { echo yes; return; }
        [ "$(date +%s)" -ge $end ] && { echo no; return; }
        sleep 0.03
    done
}

# forget PLACE DAYS: delete the folders of commands that ended so long ago; of all commands for 0.
forget() {
    [ -d "$1" ] || return 0
    if [ "$2" = 0 ]; then rm -rf "$1"; else find "$1" -mindepth 1 -maxdepth 1 -mtime "+$2" -exec rm -rf {} +; fi
}

# ---- files

# real PATH: print the path with all links resolved; its last parts need not exist.
real() {
    path=$1 rest=''
    while [ ! -e "$path" ] && [ ! -L "$path" ] && [ "$path" != / ] && [ -n "$path" ]; do
        rest="/${path##*/}$rest"
        path=${path%/*}
    done
    found=$(readlink -f -- "${path:-/}") || fail "the links of $1 can't be resolved"
    [ "$found" = / ] && [ -n "$rest" ] && found=''
    printf '%s%s' "$found" "$rest"
}

# kind PATH: print `folder`, `file`, `other` or `nothing`.
kind() {
    if [ -d "$1" ]; then echo folder; elif [ -f "$1" ]; then echo file; elif [ -e "$1" ]; then echo other
    else echo nothing; fi
}

# read PATH MOST: print a file of at most so many bytes.
read_file() {
    [ "$(size "$1")" -le "$2" ] || fail "$1 has $(size "$1") bytes; $2 can be read: use \`run\`"
    cat -- "$1"
}

# put PATH: write stdin into a new file beside the path, and print its name.
put() {
    folder=$(dirname -- "$1")
    new=$(mktemp "$folder/.callboard.XXXXXX") || fail "$folder can't be written"
    cat >"$new" && { sync "$new" 2>/dev/null; printf '%s' "$new"; } || { rm -f "$new"; fail "$1 can't be written"; }
}

# place NEW PATH DIGEST: rename a new file to the path, if the present file has the SHA-256; empty for no file. A lock on
# the folder, where flock can have one, excludes other processes of Callboard between the check and the renaming.
place() {
    lock=$(dirname -- "$2")
    [ -r "$lock" ] || lock=/dev/null
    (
        flock -E 75 -w 10 9 2>/dev/null
        if [ $? = 75 ]; then
            rm -f "$1"
            fail "$2 can't be written: another program has locked its folder for more than 10 s"
        fi
        now=''
        [ -e "$2" ] && now=$(sha256sum <"$2" | cut -d' ' -f1)
        if [ "$now" != "$3" ] || [ -d "$2" ]; then
            rm -f "$1"
            fail "$2 was changed by another program meanwhile; nothing was written"
        fi
        chmod "$(stat -c %a "$2" 2>/dev/null || echo 644)" "$1"
        mv -f -- "$1" "$2" || { rm -f -- "$1"; fail "$2 can't be written"; }
    ) 9<"$lock"
}

# list PATH MOST: print so many names with kinds and sizes, or targets of links, each ended by a null; then the number
# of the others.
list() {
    cd -- "$1" 2>/dev/null || fail "there is no folder $1"
    count=0
    for name in * .*; do
        case $name in . | ..) continue ;; esac
        [ -e "$name" ] || [ -L "$name" ] || continue
        count=$((count + 1))
        [ $count -gt "$2" ] && continue
        if [ -L "$name" ]; then printf '%s -> %s\0' "$name" "$(readlink "./$name")"
        elif [ -d "$name" ]; then printf '%s/\0' "$name"
        elif [ -f "$name" ]; then printf '%s (%s)\0' "$name" "$(stat -c %s "./$name")"
        else printf '%s\0' "$name"; fi
    done
    [ $count -gt "$2" ] && printf '%s' $((count - $2))
    return 0
}

# tree PATH PROGRAMS BYTES: print all entries below a folder, and the folders of programs, separated by colons. Each has
# a letter for its kind, its path, and the target of a link, ended by nulls. A dot at the end marks a complete list: it
# is missing if find has no -printf, or may not read a folder.
tree() {
    {
        printf '%s\n' "$2" | tr ':' '\n' | while read -r folder; do
            real=$(readlink -f "$folder") && [ -d "$real" ] || continue
            [ "$real" = "$folder" ] || printf 'l%s\0%s\0' "$folder" "$real"
            printf 'd%s\0\0' "$real"
        done
        find "$1" -mindepth 1 -printf '%y%p\0%l\0' && printf '.\0'
    } 2>/dev/null | head -c "$3"
}

# find PATH PATTERN BYTES: print the paths below whose names match, each ended by a null.
find_names() {
    cd -- "$1" 2>/dev/null || fail "there is no folder $1"
    find . -mindepth 1 -name "$2" -print0 2>/dev/null | head -c "$3"
}

# search PATH TEXT NAMES OPTIONS BYTES: print lines that contain a text, as file, null, number, colon, line.
search() {
    [ -e "$1" ] || fail "there is no folder $1"
    if [ -d "$1" ]; then cd -- "$1" && set -- . "$2" "$3" "$4" "$5"; fi
    grep -rnIHFZ -D skip $4 --include="$3" -e "$2" -- "$1" 2>/dev/null | cut -c1-1000 | head -c "$5"
    return 0
}

operation=$1
shift
case $operation in
    serve | begin | hold | look | cancel | call_off | end_all | forget | real | kind | put | place | list | search | tree) "$operation" "$@" ;;
    wait) await "$@" ;;
    read) read_file "$@" ;;
    find) find_names "$@" ;;
    *) fail "there is no operation $operation" ;;
esac
