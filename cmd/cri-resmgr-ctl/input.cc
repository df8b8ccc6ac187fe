// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/input.h"

#include <string_view>

#include <unistd.h>

#include "pkg/sys/files.h"

namespace resmgr {
namespace {

constexpr std::string_view kStandardInput = "-";

}  // namespace

StatusOr<std::string> ReadNamedInput(const std::string& file, size_t limit) {
  // By the descriptor: /dev/stdin cannot be opened where it is a socket.
  return file == kStandardInput ? ReadInput(STDIN_FILENO, NameOfInput(file), limit)
                                : ReadInput(file, limit);
}

std::string NameOfInput(const std::string& file) {
  return file == kStandardInput ? "standard input" : file;
}

}  // namespace resmgr
