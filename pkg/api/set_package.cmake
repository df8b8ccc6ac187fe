# SPDX-License-Identifier: Apache-2.0
# cmake -D INPUT=FILE -D OUTPUT=FILE -D VERSION=v1alpha2 -P set_package.cmake
# Copies the CRI's proto text under another package name, runtime.VERSION.

file(READ "${INPUT}" text)
string(FIND "${text}" "package runtime.v1;" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${INPUT}: no line 'package runtime.v1;'")
endif()
string(REPLACE "package runtime.v1;" "package runtime.${VERSION};" text "${text}")
file(WRITE "${OUTPUT}" "${text}")
