#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs a build into an empty prefix, moves the prefix, and uses it as a stranger would: by
# pkg-config (shared, static), by find_package and by add_subdirectory, each from C11 and C++17.
#   install_test.sh SOURCE BUILD CC CXX [long]
# long: add_subdirectory, which builds the whole library once more, only with JANUSRT_MODELS=long.
set -eu

source=$1 build=$2 cc=$3 cxx=$4 subdirectory=${5-}
here=$source/tests/install
for tool in pkg-config cmake ninja "$cxx"; do
    command -v "$tool" >/dev/null || { echo "no $tool here"; exit 77; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
c_flags="-std=c11 -pedantic -Wall -Wextra -Werror"
cxx_flags="-std=c++17 -pedantic -Wall -Wextra -Werror -x c++"

step() { echo "# $*"; }

run() { # a program; it must say that it works
    [ "$("$@")" = "installed and working" ] || { echo "failed: $*"; exit 1; }
}

step "installs, and still works after a move"
cmake --install "$build" --prefix "$work/first" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/first" "$work/prefix"
prefix=$work/prefix
pc=$(find "$prefix" -name janusrt.pc)
lib=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="${pc%/*}"
pkg-config --validate janusrt
pkg-config --validate janusrt-http
pkg-config --validate janusrt-lang

if [ -d "$prefix/share/man/man3" ]; then
    step "every function of a manual page has a page of its own name"
    pages=$prefix/share/man
    for source_page in "$source"/docs/man/*.3.scd; do
        for name in $(sed -n '/^# SYNOPSIS/,/^# DESCRIPTION/p' "$source_page" |
            grep -o '^\*[^(]*janus_[a-z0-9_]*(' | grep -v typedef |
            grep -o 'janus_[a-z0-9_]*($'); do
            page=$pages/man3/${name%(}.3
            [ -e "$page" ] || { echo "no page for ${name%(}"; exit 1; }
            shown=$(sed -n 's/^\.so //p' "$page")
            [ "$shown" = "" ] || [ -e "$pages/$shown" ] || { echo "$page shows nothing"; exit 1; }
        done
    done
    for name in janus_serve janus_spawn janus_io_read janus_status_name; do
        [ -e "$pages/man3/$name.3" ] || { echo "no page for $name"; exit 1; }
    done
fi

step "every header compiles alone"
for header in "$prefix"/include/janusrt/*.h; do
    printf '#include <janusrt/%s>\nextern int a;\n' "${header##*/}" >"$work/alone.c"
    "$cc" $c_flags -I"$prefix/include" -fsyntax-only "$work/alone.c"
    "$cxx" $cxx_flags -I"$prefix/include" -fsyntax-only "$work/alone.c"
done

step "pkg-config, shared"
"$cc" $c_flags "$here/program.c" $(pkg-config --cflags --libs janusrt) -o "$work/c"
"$cxx" $cxx_flags "$here/program.c" $(pkg-config --cflags --libs janusrt) -o "$work/cxx"
for program in c cxx; do run env LD_LIBRARY_PATH="$lib" "$work/$program"; done

step "pkg-config, the language"
"$cc" $c_flags "$here/embed.c" $(pkg-config --cflags --libs janusrt-lang) -o "$work/embed"
run env LD_LIBRARY_PATH="$lib" "$work/embed"
printf 'func main() do\n    print("installed and working")\nend\n' >"$work/hello.jan"
run "$prefix/bin/janusrt" run "$work/hello.jan"
"$prefix/bin/janusrt" build --cc="$cc" "$work/hello.jan" -o "$work/hello"
run "$work/hello"

step "pkg-config, static"
flags=$(pkg-config --static --cflags --libs janusrt)
[[ " $flags " == *" -pthread "* ]] || { echo "Libs.private lacks -pthread: $flags"; exit 1; }
"$cc" $c_flags "$here/program.c" -static $flags -o "$work/c"
"$cxx" $cxx_flags "$here/program.c" -static $flags -o "$work/cxx"
for program in c cxx; do run "$work/$program"; done

step "pkg-config, the library of HTTP"
"$cc" $c_flags "$here/server.c" $(pkg-config --cflags --libs janusrt-http) -o "$work/c"
"$cxx" $cxx_flags "$here/server.c" $(pkg-config --cflags --libs janusrt-http) -o "$work/cxx"
for program in c cxx; do run env LD_LIBRARY_PATH="$lib" "$work/$program"; done
# A static glibc warns that it looks up names with shared libraries.
"$cc" $c_flags "$here/server.c" -static $(pkg-config --static --cflags --libs janusrt-http) \
    -o "$work/c" 2>"$work/log" || { cat "$work/log"; exit 1; }
run "$work/c"

if [ -e "${pc%/*}/janusrt-tls.pc" ]; then
    step "pkg-config, the library of TLS"
    pkg-config --validate janusrt-tls
    "$cc" $c_flags "$here/secure.c" $(pkg-config --cflags --libs janusrt-tls janusrt-http) \
        -o "$work/c"
    run env LD_LIBRARY_PATH="$lib" "$work/c"
fi
for library in libjanusrt.so libjanusrt-http.so; do # only the library of TLS needs OpenSSL
    if readelf -d "$lib/$library" | grep -q 'NEEDED.*lib\(ssl\|crypto\)'; then
        echo "$library needs OpenSSL"
        exit 1
    fi
done

cmake_user() { # name, then options for cmake
    local name=$1
    shift
    step "cmake, $name"
    {
        # -O0: this asks whether it builds and links, and -O2 takes three times as long.
        cmake -G Ninja -S "$here" -B "$work/$name" -DCMAKE_BUILD_TYPE=Release \
            -DCMAKE_C_FLAGS_RELEASE=-O0 -DCMAKE_CXX_FLAGS_RELEASE=-O0 \
            -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" "$@" &&
            cmake --build "$work/$name"
    } >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    for program in {c,cxx}_{janusrt,static,http,http_static}; do run "$work/$name/$program"; done
    [ ! -e "${pc%/*}/janusrt-tls.pc" ] ||
        for program in c_tls c_tls_static; do run "$work/$name/$program"; done
}
cmake_user find_package -DCMAKE_PREFIX_PATH="$prefix"
[ "$subdirectory" = "" ] || [ "${JANUSRT_MODELS-}" = long ] || exit 0
cmake_user add_subdirectory -DJANUSRT_SOURCE="$source"
[ ! -e "$work/add_subdirectory/janusrt/tests" ] || { echo "the tests were built along"; exit 1; }
