// SPDX-License-Identifier: Apache-2.0
#include "test/support/programs/programs.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace resmgr::test {
namespace {

std::string BuildDirectory() {
  const char* const other = std::getenv("RESMGR_PROGRAMS");
  return other != nullptr && *other != '\0' ? other : RESMGR_BINARY_DIR;
}

// The value of RESMGR_SANITIZE in that build's configuration.
std::string Sanitizers() {
  std::ifstream file(ProgramAt("sanitizers"));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string Program(std::string_view name) {
  std::string path = "cmd/";
  path.append(name).append("/").append(name);
  // cri-resmgr-ctl has no threads, and is not built with ThreadSanitizer.
  if (name == "cri-resmgr-ctl" && ThreadSanitizedPrograms()) return RESMGR_BINARY_DIR "/" + path;
  return ProgramAt(path);
}

std::string ProgramAt(std::string_view path) {
  return BuildDirectory().append("/").append(path);
}

bool SanitizedPrograms() {
  return Sanitizers().find_first_not_of('\n') != std::string::npos;
}

bool ThreadSanitizedPrograms() {
  return Sanitizers().find("thread") != std::string::npos;
}

}  // namespace resmgr::test
