#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the documentation site into build/site: the pages of docs/ and those that they link to, the options of the tool as its --help
# prints them, and the references of the C and C++ API by Doxygen and of the Python API by mkdocstrings. Debian 12, as root or with sudo.
# build/site/index.html is the start page. The script fails for warnings, for dead links, and where a page loads anything from another
# server.
# usage: site.sh
set -eu
cd "$(dirname "$0")/.."
sh scripts/packages.sh doxygen python3-venv
[ -x build/tconv-cl ] || sh scripts/build.sh
venv=build/site-venv
pages=build/site-pages
log=build/site.log

# ---- the API reference ----
rm -rf build/doxygen "$pages" build/site
mkdir -p build/doxygen
version=$(sed -n 's/^#define TCONV_VERSION_STRING "\(.*\)"/\1/p' include/tconv_cl/version.h)
{ cat site/Doxyfile; echo "PROJECT_NUMBER = $version"; } | doxygen - >"$log" 2>&1 || { cat "$log"; exit 1; }
# Functions of the C++ header are called as those of C, which have the comments.
if grep -v 'tconv_cl\.hpp:.* is not documented' "$log" | grep -E '^[^ ]+:[0-9]+: (warning|error): '; then exit 1; fi
python3 - build/doxygen/xml/*_8h.xml <<'END_OF_PROGRAM' # Doxygen does not warn of enumerators
import sys
import xml.etree.ElementTree as tree

bare = [
    value.findtext("name")
    for name in sys.argv[1:]
    for value in tree.parse(name).iter("enumvalue")
    if not any("".join(part.itertext()).strip() for part in value if part.tag.endswith("description"))
]
if bare:
    sys.exit("enumerators without a comment: " + ", ".join(bare))
END_OF_PROGRAM

# ---- pages: the tree as it is, so that links between files work ----
mkdir "$pages"
tar -cf "$pages/pages.tar" docs cl include examples CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE python/README.md python/versions.txt fuzz/README.md \
    device_tests/vectors/README.md
tar -xf "$pages/pages.tar" -C "$pages"
rm "$pages/pages.tar"
cp -r build/doxygen/api "$pages/api"
cp README.md "$pages/overview.md"
cp site/extra.css site/iframe-worker.js "$pages"
cp site/python_api.md "$pages/docs"
mv "$pages/docs/index.md" "$pages/index.md"

# A source file becomes a page that shows it; a folder of them a page that lists it.
for file in $(cd "$pages" && find cl examples -type f ! -name '*.md'); do
    case $file in
    *.png) continue ;;
    *.py) language=python ;;
    *.txt) language=text ;;
    *.sh) language=sh ;;
    *) language=c ;;
    esac
    {
        printf -- '---\nsearch: {exclude: true}\n---\n# %s\n\n```%s\n' "$file" "$language"
        cat "$pages/$file"
        echo '```'
    } >"$pages/$file.md"
    rm "$pages/$file"
done
{
    printf '# examples/algorithm\n\n'
    for file in toy.c toy.cl toy_table.h; do echo "- [$file]($file.md)"; done
} >"$pages/examples/algorithm/index.md"

# The options of the tool
{
    printf '# Options of the tool\n\nWhat `tconv-cl --help` prints, and `tconv-cl COMMAND --help`. [What the tool does](tool.md).\n\n```text\n'
    build/tconv-cl --help
    echo '```'
    for command in $(build/tconv-cl --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'); do
        case $command in manual | completion | help | version) continue ;; esac
        printf '\n## %s\n\n```text\n' "$command"
        build/tconv-cl "$command" --help
        echo '```'
    done
} >"$pages/docs/tool_options.md"

# Links to files that have another name here: headers lead to the API reference.
find "$pages" -name '*.md' -not -path "$pages/api/*" -exec sed -i -E \
    -e 's#\]\(((\.\./)*)include/tconv_cl/([a-z_]+)\.(h|hpp)\)#](\1api/\3_8\4.html)#g' \
    -e 's#(api/(tconv|device))_([a-z])#\1__\3#g' \
    -e 's#\]\(((\.\./)*)(cl|examples)/([A-Za-z0-9_/]+\.(cl|clh|h|c|cpp|hpp|py))\)#](\1\3/\4.md)#g' \
    -e 's#\]\(((\.\./)*)examples/algorithm\)#](\1examples/algorithm/index.md)#g' \
    -e 's#\]\(((\.\./)*)README\.md(\#[a-z-]*)?\)#](\1overview.md\3)#g' \
    -e 's#\]\(((\.\./)*)docs/index\.md\)#](\1index.md)#g' {} +
sed -i -E -e 's#\]\(([a-z0-9_/-]+\.md)#](docs/\1#g' -e 's#\]\(\.\./#](#g' "$pages/index.md"
rm -r "$pages/include"

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --requirement site/requirements.txt

# Tutorials in Python as notebooks, too. Tests of the package run their code (python/tests/test_readme.py).
for name in python torch; do
    "$venv/bin/jupytext" --quiet --to ipynb --output "$pages/docs/tutorials/$name.ipynb" "docs/tutorials/$name.md"
    sed -i "1s/\$/\n\n[This page as a notebook]($name.ipynb)/" "$pages/docs/tutorials/$name.md"
done

# ---- the site ----
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict --config-file site/mkdocs.yml >"$log" 2>&1 || { cat "$log"; exit 1; }
python3 site/check.py build/site
echo "built: build/site/index.html, $(find build/site -name '*.html' | wc -l) pages"
