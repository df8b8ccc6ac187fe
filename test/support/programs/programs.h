// SPDX-License-Identifier: Apache-2.0
// The project's programs, as tests start them.
//
// Tests that only start programs are compiled once, without sanitizers, and run with the programs
// of each build: with RESMGR_PROGRAMS=DIRECTORY in the environment those of that build directory
// are taken in place of those of the test's own build (pkg/adr/0005-test-tiers.md).
#pragma once

#include <string>
#include <string_view>

namespace resmgr::test {

// A program that is installed: <build>/cmd/NAME/NAME.
std::string Program(std::string_view name);

// Any other one of the same build, by its path there: "test/integration/cri-resmgr-next".
std::string ProgramAt(std::string_view path);

// Whether these programs have AddressSanitizer or ThreadSanitizer in them. Memory and times have no
// meaning then, and exhaustive loops take minutes.
bool SanitizedPrograms();

// Whether it is ThreadSanitizer, which has a thread of its own.
bool ThreadSanitizedPrograms();

}  // namespace resmgr::test
