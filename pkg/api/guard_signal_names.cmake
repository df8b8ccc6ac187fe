# SPDX-License-Identifier: Apache-2.0
# cmake -D HEADER=FILE -P guard_signal_names.cmake
# The CRI has an enum of signals whose values are named SIGTERM, SIGKILL and so on, which <csignal>
# defines as macros. Suspends those macros within the generated header, so that it compiles behind
# any other header and leaves the macros as they were.

file(STRINGS "${HEADER}" lines REGEX "^  SIG[A-Z0-9]+ = ")
set(suspend "")
set(resume "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^  (SIG[A-Z0-9]+) = .*" "\\1" name "${line}")
  string(APPEND suspend "#pragma push_macro(\"${name}\")\n#undef ${name}\n")
  string(APPEND resume "#pragma pop_macro(\"${name}\")\n")
endforeach()
if(suspend STREQUAL "")
  message(FATAL_ERROR "${HEADER}: found no signal names to guard")
endif()

file(READ "${HEADER}" text)
set(includes_end "// @@protoc_insertion_point(includes)\n")
set(scope_end "// @@protoc_insertion_point(global_scope)\n")
foreach(mark IN ITEMS "${includes_end}" "${scope_end}")
  string(FIND "${text}" "${mark}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${HEADER}: the generated text has no '${mark}'")
  endif()
endforeach()
string(REPLACE "${includes_end}" "${includes_end}${suspend}" text "${text}")
string(REPLACE "${scope_end}" "${scope_end}${resume}" text "${text}")
file(WRITE "${HEADER}" "${text}")
