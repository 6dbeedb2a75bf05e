#!/bin/sh
# Opens a report's page in headless Chromium, in light and dark, 1280 and 400 pixels wide, and checks it.
#   scripts/check-page.sh FOLDER [PICTURES]    FOLDER: of a report, with its index.html
# Prints a line for each view; ends with 1 if there was a message on the console, a request other than for
# the page, a plot that was not drawn, or content wider than the view. PICTURES: folder for screenshots.
# Needs Debian's chromium and python3.
set -eu
[ $# -ge 1 ] && [ -f "$1/index.html" ] || { sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; }
page=file://$(realpath "$1")/index.html
pictures=${2:-}
[ -z "$pictures" ] || mkdir -p "$pictures"
command -v chromium >/dev/null || { echo "chromium is missing: apt-get install chromium" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A copy of the page, in a frame of the width to check, as the browser's own window cannot be so narrow,
# reports in the title how many plots take room, what was loaded beside the page, and how wide it is.
measure='<script>addEventListener("load", function () {
var all = [...document.querySelectorAll("figure svg")];
var drawn = all.filter(function (svg) { return svg.getBoundingClientRect().height > 50
  && svg.querySelectorAll("path, line, rect, circle, polyline, polygon").length > 3; });
parent.document.title = "measured " + drawn.length + " " + all.length + " "
  + performance.getEntriesByType("resource").length + " " + document.documentElement.scrollWidth;
}); </script>'
{ cat "$1/index.html"; echo "$measure"; } >"$work/measured.html"

failed=0
for width in 1280 400; do
    for theme in light dark; do
        settings=
        [ "$theme" = light ] || settings=--blink-settings=preferredColorScheme=0
        chrome() {
            timeout 120 chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars \
                --allow-file-access-from-files --user-data-dir="$work/user" --enable-logging=stderr \
                --window-size=1280,1600 $settings "$@" 2>"$work/log"
        }
        frame() {
            echo "<body style='margin:0'><iframe style='border:0' width=$width height=1600 src='$1'></iframe>"
        }
        frame measured.html >"$work/frame.html"
        chrome --dump-dom "file://$work/frame.html" >"$work/dom"
        messages=$(grep -c ':CONSOLE' "$work/log" || :)
        set -- "$1" $(sed -n 's/.*<title>measured \([^<]*\)<.*/\1/p' "$work/dom")
        [ $# = 5 ] || { echo "$width pixels, $theme: the page was not measured" >&2; exit 1; }
        echo "$width pixels, $theme: $2 of $3 plots drawn, $messages console messages," \
            "$4 requests, content $5 pixels wide"
        [ "$2" = "$3" ] && [ "$messages$4" = 00 ] && [ "$5" -le "$width" ] || failed=1
        if [ -n "$pictures" ]; then
            frame "$page" >"$work/frame.html"
            chrome --screenshot="$pictures/$width-$theme.png" "file://$work/frame.html"
        fi
    done
done
exit $failed
