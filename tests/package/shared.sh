# Functions that the scripts of this folder share.

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

skip() {
  echo "skipped: $1"
  exit 77
}

# says FILE TEXT: fails unless a line of the file contains the text.
says() {
  grep --quiet --fixed-strings -- "$2" "$1" || { cat "$1"; fail "no \"$2\" in $1"; }
}
