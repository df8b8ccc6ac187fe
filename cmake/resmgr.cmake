# SPDX-License-Identifier: Apache-2.0
# Helpers that every module uses; all compiler flags live on the interface target resmgr_flags.

include(GoogleTest)

add_library(resmgr_flags INTERFACE)
target_compile_features(resmgr_flags INTERFACE cxx_std_20)
target_include_directories(resmgr_flags INTERFACE ${PROJECT_SOURCE_DIR})
# popcnt and friends: every x86-64 server of the last fifteen years has them, and CPU sets live on them.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(resmgr_flags INTERFACE -march=x86-64-v2)
endif()
target_compile_options(resmgr_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Wcast-align -Woverloaded-virtual -Wimplicit-fallthrough)
if(RESMGR_WERROR)
  target_compile_options(resmgr_flags INTERFACE -Werror)
endif()
# In a unity source, GCC takes every anonymous namespace for that of a header, and clang every alias of an earlier file for
# one that is shadowed.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(resmgr_flags INTERFACE -Wno-subobject-linkage)
elseif(CMAKE_UNITY_BUILD)
  target_compile_options(resmgr_flags INTERFACE -Wno-shadow)
endif()
# GCC otherwise looks for unused memory of its own each time the memory has doubled. With this it takes 0.91 to 0.94 of the time
# where two run at once, writes the same code, and needs a fifth more memory (2.0 GB for the largest unity source).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(resmgr_flags INTERFACE --param=ggc-min-expand=1000)
endif()
if(RESMGR_SANITIZE)
  target_compile_options(resmgr_flags INTERFACE
    -fsanitize=${RESMGR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(resmgr_flags INTERFACE -fsanitize=${RESMGR_SANITIZE})
  # What inputs reach in all libraries guides the search; without it libFuzzer ends at once.
  if(RESMGR_FUZZ)
    target_compile_options(resmgr_flags INTERFACE -fsanitize=fuzzer-no-link)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_link_options(resmgr_flags INTERFACE -fuse-ld=lld)
  endif()
  # AddressSanitizer describes every global by pointers: 1.5 million of them for the dynamic linker to relocate, a third of
  # what it takes to start the daemon, if it may lie anywhere.
  target_link_options(resmgr_flags INTERFACE -no-pie)
  # The check of vptr reads memory by way of a pipe, and takes it for wrong where files have run out, as tests see to.
  if(RESMGR_SANITIZE MATCHES "undefined")
    target_compile_options(resmgr_flags INTERFACE -fno-sanitize=vptr)
  endif()
  # The check of functions describes the type of each function in globals: 58,000 of the daemon's 88,000, which AddressSanitizer
  # notes at each start. The code calls by std::function and virtual functions, whose types the compiler sees.
  if(RESMGR_SANITIZE MATCHES "undefined" AND NOT RESMGR_FUZZ AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(resmgr_flags INTERFACE -fno-sanitize=function)
  endif()
  # GCC 12 believes in uninitialized values inside std::optional and std::function once sanitizers change the code around
  # them; under ThreadSanitizer it also warns of the fences in Boost.Asio, which that does not see.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(resmgr_flags INTERFACE -Wno-maybe-uninitialized)
    if(RESMGR_SANITIZE STREQUAL "thread")
      target_compile_options(resmgr_flags INTERFACE -Wno-tsan)
    endif()
  endif()
else()
  target_compile_definitions(resmgr_flags INTERFACE $<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
  target_compile_options(resmgr_flags INTERFACE -fstack-protector-strong)
  target_link_options(resmgr_flags INTERFACE -Wl,-z,relro,-z,now,--as-needed)
endif()

# Linked into each executable: AddressSanitizer's options.
add_library(resmgr_start INTERFACE)
if(RESMGR_SANITIZE MATCHES "address")
  add_library(resmgr_asan_start OBJECT ${PROJECT_SOURCE_DIR}/test/support/asan_start.cc)
  target_link_libraries(resmgr_asan_start PRIVATE resmgr_flags)
  target_link_libraries(resmgr_start INTERFACE resmgr_asan_start $<TARGET_OBJECTS:resmgr_asan_start>)
endif()

# By a profile the compiler knows which branches are taken, and puts what runs together next to each other: a fifth of what
# a creation takes (pkg/adr/0010-profile.md). Functions that were not run for it are compiled as without a profile, as are
# those that have changed since.
set(resmgr_profile ${PROJECT_BINARY_DIR}/profile)
if(RESMGR_PROFILE AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "RESMGR_PROFILE: only GCC reads and writes these profiles")
endif()
if(RESMGR_PROFILE STREQUAL "make")
  target_compile_options(resmgr_flags INTERFACE
    -fprofile-generate -fprofile-update=prefer-atomic -fprofile-dir=${resmgr_profile})
  target_link_options(resmgr_flags INTERFACE -fprofile-generate)
elseif(RESMGR_PROFILE STREQUAL "use")
  target_compile_options(resmgr_flags INTERFACE
    -fprofile-use=${resmgr_profile} -fprofile-partial-training -Wno-missing-profile -Wno-coverage-mismatch)
  target_link_options(resmgr_flags INTERFACE -fprofile-use=${resmgr_profile} -fprofile-partial-training)
elseif(RESMGR_PROFILE)
  message(FATAL_ERROR "RESMGR_PROFILE: '${RESMGR_PROFILE}' is none of make and use")
endif()

# Tests run for less time than an optimizer takes for them, as does what supports them, but for what benches measure with
# (BENCHED). _FORTIFY_SOURCE asks for an optimizer.
# -pthread: some libraries ask for it, and a precompiled header is of use only to sources that agree with it on that.
# With sanitizers, libraries are compiled in half of the time without an optimizer, and tests of them mostly wait for
# processes and times: only what random tests compute with for long is optimized there. A pointer that is null ends a test
# without a check of each use, and only code that reads bytes as something else finds them at a wrong address (CASTS): these
# two checks are a quarter of what tests take to compile, and a sixth for libraries. A search by libFuzzer has all checks.
set(resmgr_library_options)
# To be linked after resmgr_flags, since they take some of them back.
add_library(resmgr_castless_flags INTERFACE)
if(RESMGR_SANITIZE MATCHES "undefined" AND NOT RESMGR_FUZZ)
  target_compile_options(resmgr_castless_flags INTERFACE -fno-sanitize=null,alignment)
endif()
add_library(resmgr_test_flags INTERFACE)
target_compile_options(resmgr_test_flags INTERFACE -pthread)
set(resmgr_test_launcher)
if(RESMGR_SANITIZE)
  set(resmgr_library_options -O0)
  target_compile_options(resmgr_test_flags INTERFACE -O0 -g0)
  target_link_libraries(resmgr_test_flags INTERFACE resmgr_castless_flags)
else()
  target_compile_options(resmgr_test_flags INTERFACE -U_FORTIFY_SOURCE $<$<CONFIG:Release>:-O0>)
  # clang compiles tests in half of the time of GCC. GCC compiles installed programs, which are
  # optimized by a profile, and the programs that make the profile, since clang does not know GCC's
  # flags for it.
  find_program(CLANG_PROGRAM clang++)
  if(CLANG_PROGRAM AND NOT RESMGR_PROFILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release")
    set(launcher ${CCACHE_PROGRAM})
    if(NOT launcher)
      set(launcher env)
    endif()
    set(resmgr_test_launcher ${clang_ccache_environment} ${PROJECT_SOURCE_DIR}/cmake/compile-by-clang ${launcher})
    target_compile_options(resmgr_test_flags INTERFACE -Wno-unknown-warning-option -Wno-unused-command-line-argument)
    if(CMAKE_UNITY_BUILD)
      target_compile_options(resmgr_test_flags INTERFACE -Wno-shadow)
    endif()
  endif()
endif()
# ccache takes a header with a time in it for another one each time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR resmgr_test_launcher)
  target_compile_options(resmgr_test_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()

# resmgr_test_code(TARGET): its code is that of a test.
function(resmgr_test_code target)
  target_link_libraries(${target} PRIVATE resmgr_flags resmgr_test_flags)
  if(resmgr_test_launcher)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${resmgr_test_launcher}")
  endif()
endfunction()

# gtest, gmock and what nearly every test includes besides, parsed once for all tests. An executable, since its flags
# must be the tests' own.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cc CONTENT "int main() {}\n")
add_executable(resmgr_test_headers EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/test_headers.cc)
target_link_libraries(resmgr_test_headers PRIVATE absl::flat_hash_map absl::statusor nlohmann_json::nlohmann_json GTest::gmock)
resmgr_test_code(resmgr_test_headers)
target_precompile_headers(resmgr_test_headers PRIVATE
  <algorithm> <chrono> <filesystem> <functional> <list> <map> <memory> <numeric> <optional> <string> <unordered_set> <vector>
  <absl/container/flat_hash_map.h> <absl/status/statusor.h> <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)

# resmgr_library_headers(NAME options...): what most sources of libraries include, parsed once for the libraries that are
# compiled with these options: about a second less for each object, a tenth of what it takes. The header is compiled for a
# library itself, since sources and header have to agree on -fPIC.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/library_headers.cc CONTENT "// Only what is parsed for it.\n")
function(resmgr_library_headers name)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/library_headers.cc)
  target_link_libraries(${name} PRIVATE
    resmgr_flags absl::flat_hash_map absl::statusor fmt::fmt nlohmann_json::nlohmann_json)
  target_compile_options(${name} PRIVATE -pthread ${ARGN})
  target_precompile_headers(${name} PRIVATE
    <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <deque> <filesystem> <functional> <list> <map> <memory> <mutex>
    <numeric> <optional> <set> <span> <string> <string_view> <tuple> <unordered_map> <unordered_set> <utility> <vector>
    <absl/container/flat_hash_map.h> <absl/status/statusor.h> <fmt/format.h> <nlohmann/json.hpp>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
resmgr_library_headers(resmgr_headers ${resmgr_library_options})
resmgr_library_headers(resmgr_optimized_headers)

# Every call or creation runs a little code of many modules that was not run for a while. Link-time optimization lays it out
# in fewer pieces, which saves a twentieth of a creation's time. Only cri-resmgr is linked so, by the objects that it takes from
# here.
add_library(resmgr_data_path INTERFACE)
set(resmgr_lto FALSE)
if(RESMGR_TUNED AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT RESMGR_SANITIZE)
  set(resmgr_lto TRUE)
  target_link_options(resmgr_data_path INTERFACE -flto=auto)
  resmgr_library_headers(resmgr_data_path_headers -flto=auto -ffat-lto-objects)
endif()

# resmgr_library(NAME SRCS a.cc ... [DEPS public...] [PRIVATE_DEPS private...] [SUPPORT [BENCHED] | DATA_PATH | DECIDES]
#                [RANDOM_TESTS] [CASTS])
# One static library per module, with the alias resmgr::NAME. SUPPORT: nothing that is installed links it; with BENCHED
# benches measure with it. DATA_PATH: every call or creation goes through it. DECIDES: creations go through it where it is
# configured. RANDOM_TESTS: tests with random input spend most of their time in it. CASTS: it reads bytes as something else.
function(resmgr_library name)
  cmake_parse_arguments(ARG "SUPPORT;BENCHED;DATA_PATH;DECIDES;RANDOM_TESTS;CASTS" "" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(resmgr_${name} STATIC ${ARG_SRCS})
  add_library(resmgr::${name} ALIAS resmgr_${name})
  target_link_libraries(resmgr_${name} PUBLIC ${ARG_DEPS} PRIVATE resmgr_flags ${ARG_PRIVATE_DEPS})
  if(RESMGR_SANITIZE OR ARG_SUPPORT)
    # Built where something needs it.
    set_target_properties(resmgr_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  set(headers resmgr_headers)
  if(ARG_SUPPORT)
    if(RESMGR_SANITIZE OR NOT (ARG_BENCHED AND RESMGR_TUNED))
      resmgr_test_code(resmgr_${name})
    endif()
    set(headers)
  elseif(ARG_RANDOM_TESTS AND RESMGR_SANITIZE AND NOT RESMGR_SANITIZE STREQUAL "thread")
    set(headers resmgr_optimized_headers)
  else()
    target_compile_options(resmgr_${name} PRIVATE ${resmgr_library_options})
  endif()
  if((ARG_DATA_PATH OR ARG_DECIDES) AND RESMGR_TUNED AND NOT RESMGR_SANITIZE)
    target_compile_options(resmgr_${name} PRIVATE $<$<CONFIG:Release>:-O3>)
  endif()
  if(NOT ARG_CASTS)
    target_link_libraries(resmgr_${name} PRIVATE resmgr_castless_flags)
  endif()
  if(ARG_DATA_PATH AND resmgr_lto)
    target_compile_options(resmgr_${name} PRIVATE -flto=auto -ffat-lto-objects)
    set(headers resmgr_data_path_headers)
    target_sources(resmgr_data_path INTERFACE $<TARGET_OBJECTS:resmgr_${name}>)
    # The archive is for everything else. GCC would optimize again whatever it finds prepared for that: each of the
    # tests, for half a minute.
    add_custom_command(TARGET resmgr_${name} POST_BUILD
      COMMAND ${CMAKE_OBJCOPY} --remove-section=.gnu.lto_* --remove-section=.gnu.debuglto_*
              $<TARGET_FILE:resmgr_${name}>
      VERBATIM)
  endif()
  target_include_directories(resmgr_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  if(headers)
    target_compile_options(resmgr_${name} PRIVATE -pthread)
    target_precompile_headers(resmgr_${name} REUSE_FROM ${headers})
  endif()
endfunction()

# resmgr_binary(NAME [COMPONENT daemon|agent|webhook] SRCS ... DEPS ... [DATA_PATH]): an executable that lands in
# <build>/cmd/NAME/NAME and is installed with the package of COMPONENT; without one it is for tests. DATA_PATH: the
# modules of the data path are optimized as a whole.
function(resmgr_binary name)
  cmake_parse_arguments(ARG "DATA_PATH" "COMPONENT" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE resmgr_flags resmgr_start ${ARG_DEPS})
  if(ARG_DATA_PATH)
    target_link_libraries(${name} PRIVATE resmgr_data_path)
  endif()
  target_compile_definitions(${name} PRIVATE RESMGR_VERSION="${PROJECT_VERSION}")
  if(RESMGR_SANITIZE)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)  # but for what tests start
  endif()
  if(ARG_COMPONENT)
    install(TARGETS ${name} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${ARG_COMPONENT})
  endif()
endfunction()

# resmgr_bench(NAME SRCS ... [DEPS ...]): a program that measures. Without RESMGR_TUNED nothing is measured: then it only has to
# compile, and is compiled as tests are.
function(resmgr_bench name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  if(RESMGR_TUNED)
    target_link_libraries(${name} PRIVATE resmgr_flags)
  else()
    resmgr_test_code(${name})
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_compile_definitions(${name} PRIVATE RESMGR_BINARY_DIR="${PROJECT_BINARY_DIR}")
endfunction()

# resmgr_test(NAME SRCS ... DEPS ... [LABEL unit|integration|amounts|serial|e2e|crash|lint] [TIMEOUT seconds]
#             [SHARDS n] [THREADS [SINGLE_THREADED a_test.cc ...] | PROGRAMS programs... [HELPERS programs...]])
# One test executable; every TEST in it becomes one ctest entry. LABEL: `integration` are tests that need several
# modules or processes, `amounts` those of them that scripts/test also runs with the release, `serial` those of them
# that judge time or memory, of which each gets a processor, while `crash` runs alone. Under sanitizers all tests of a
# program are one entry, or SHARDS entries, which run beside others; `lint` programs are one entry in each build.
# THREADS: what it tests starts threads; without that
# ThreadSanitizer has nothing to find, and the test is left out of that build, as are SINGLE_THREADED sources, which are
# further ones whose tests start no thread. PROGRAMS: what it tests are these programs, which it starts; it is built
# without sanitizers only, and run with the programs of each build (test/support/programs), those with sanitizers from
# RESMGR_PLAIN_BUILD. HELPERS: it starts these as well, always those of its own build.
function(resmgr_test name)
  cmake_parse_arguments(ARG "THREADS" "LABEL;TIMEOUT;SHARDS" "SRCS;DEPS;SINGLE_THREADED;PROGRAMS;HELPERS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(RESMGR_SANITIZE AND ARG_PROGRAMS)
    if(RESMGR_SANITIZE STREQUAL "thread")
      list(REMOVE_ITEM ARG_PROGRAMS cri-resmgr-ctl)  # has no threads; tests take the plain one
    endif()
    set_target_properties(${ARG_PROGRAMS} PROPERTIES EXCLUDE_FROM_ALL OFF)
    file(RELATIVE_PATH folder ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR})
    resmgr_test_shards(${name} ${RESMGR_PLAIN_BUILD}/${folder}/${name})
    return()
  endif()
  if(ARG_SINGLE_THREADED AND NOT RESMGR_SANITIZE STREQUAL "thread")
    list(APPEND ARG_SRCS ${ARG_SINGLE_THREADED})
    list(SORT ARG_SRCS)
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE resmgr_start ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  resmgr_test_code(${name})
  target_precompile_headers(${name} REUSE_FROM resmgr_test_headers)
  if(NOT RESMGR_SANITIZE)
    target_link_options(${name} PRIVATE -fuse-ld=lld)  # in a third of the time
  endif()
  # Only tests that name these directories get them, since they keep ccache from serving another checkout.
  foreach(source IN LISTS ARG_SRCS)
    file(STRINGS ${source} uses REGEX "RESMGR_(SOURCE|BINARY)_DIR")
    if(uses)
      target_compile_definitions(${name} PRIVATE
        RESMGR_SOURCE_DIR="${PROJECT_SOURCE_DIR}" RESMGR_BINARY_DIR="${PROJECT_BINARY_DIR}")
      break()
    endif()
  endforeach()
  if(NOT RESMGR_TESTS
      OR (ARG_LABEL MATCHES "^(unit|integration)$" AND NOT ARG_PROGRAMS AND NOT RESMGR_EVERYTHING)
      OR (RESMGR_SANITIZE STREQUAL "thread" AND NOT ARG_THREADS)
      OR (RESMGR_SANITIZE AND ARG_LABEL STREQUAL "lint"))
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  # Tests of the sources share what they have read: 20 seconds less.
  if(RESMGR_SANITIZE OR ARG_LABEL STREQUAL "lint")
    resmgr_test_shards(${name} ${name})
    return()
  endif()
  if(ARG_PROGRAMS)
    add_dependencies(${name} ${ARG_PROGRAMS} ${ARG_HELPERS})
  endif()
  set(properties TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LABEL STREQUAL "serial")
    list(APPEND properties PROCESSORS 2)  # so that scripts/test runs one for each processor
  elseif(ARG_LABEL STREQUAL "crash")
    list(APPEND properties RUN_SERIAL ON)
  endif()
  # The printed values of parameters may be addresses, and names should be the same in every build.
  if(ARG_LABEL MATCHES "^(e2e|crash)$")
    # The instantiation "Long" has a label of its own: more of what others test with fewer values (pkg/adr/0005-test-tiers.md).
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES TEST_FILTER "Long/*" TEST_LIST ${name}_LONG_TESTS
      PROPERTIES LABELS long ${properties})
    set(filter TEST_FILTER "-Long/*")
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES ${filter}
    PROPERTIES LABELS ${ARG_LABEL} ${properties})
endfunction()

# Within resmgr_test: COMMAND has all tests of the program; each shard of them is one ctest entry. To start a process anew
# for each of them under a sanitizer takes longer than most tests (pkg/adr/0005-test-tiers.md).
macro(resmgr_test_shards name command)
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    math(EXPR index "${shard} - 1")
    set(entry ${name}_${shard})
    add_test(NAME ${entry} COMMAND ${command})
    set_tests_properties(${entry} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 1500)
    if(ARG_PROGRAMS)
      # They take longest, and mostly wait: other tests run beside them. In a new folder ctest has no times of earlier runs.
      set_tests_properties(${entry} PROPERTIES COST 100)
    endif()
    set_property(TEST ${entry} PROPERTY ENVIRONMENT
      GTEST_TOTAL_SHARDS=${ARG_SHARDS} GTEST_SHARD_INDEX=${index}
      GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/gtest/${entry}.xml RESMGR_PROGRAMS=${PROJECT_BINARY_DIR})
  endforeach()
endmacro()
