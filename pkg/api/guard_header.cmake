# SPDX-License-Identifier: Apache-2.0
# cmake -D HEADER=FILE -P guard_header.cmake
# Makes a generated header of the CRI fit to be included anywhere:
#
# The CRI has an enum of signals whose values are named SIGTERM, SIGKILL and so on, which <csignal>
# defines as macros. They are suspended within the header, so that it compiles behind any other
# header and leaves the macros as they were.
#
# Under ThreadSanitizer g++ defines a macro that gives protobuf's map fields two more members, which
# the installed libprotobuf does not know of: it would read the others at wrong places. It is
# suspended where the map fields are declared.

function(suspend names begin end)
  set(push "")
  set(pop "")
  foreach(name IN LISTS names)
    string(APPEND push "#pragma push_macro(\"${name}\")\n#undef ${name}\n")
    string(APPEND pop "#pragma pop_macro(\"${name}\")\n")
  endforeach()
  set(${begin} "${push}" PARENT_SCOPE)
  set(${end} "${pop}" PARENT_SCOPE)
endfunction()

function(replace_once mark text)
  string(FIND "${header}" "${mark}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${HEADER}: the generated text has no '${mark}'")
  endif()
  string(REPLACE "${mark}" "${text}" header "${header}")
  set(header "${header}" PARENT_SCOPE)
endfunction()

file(STRINGS "${HEADER}" signals REGEX "^  SIG[A-Z0-9]+ = ")
list(TRANSFORM signals REPLACE "^  (SIG[A-Z0-9]+) = .*" "\\1")
suspend("${signals}" signals_begin signals_end)
suspend(__SANITIZE_THREAD__ sanitizer_begin sanitizer_end)

file(READ "${HEADER}" header)
set(includes_end "// @@protoc_insertion_point(includes)\n")
set(scope_end "// @@protoc_insertion_point(global_scope)\n")
set(map_field "#include <google/protobuf/map_field_inl.h>\n")
replace_once("${includes_end}" "${includes_end}${signals_begin}")
replace_once("${scope_end}" "${scope_end}${signals_end}")
replace_once("${map_field}" "${sanitizer_begin}${map_field}${sanitizer_end}")
file(WRITE "${HEADER}" "${header}")
