#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts here before they do anything: with -h or --help as the first argument, prints the comment at the head of
# the script, and ends it.
case ${1:-} in
  -h | --help)
    awk 'NR > 2 { if (!sub(/^# ?/, "")) exit; print }' "$0"
    exit 0
    ;;
esac

# Ends a script that has no arguments but was given some, before it works for minutes on what was not meant.
refuse_arguments() { # ARGUMENT...
  [ $# -eq 0 ] && return
  echo "$0: unexpected argument '$1' ($0 --help)" >&2
  exit 2
}
