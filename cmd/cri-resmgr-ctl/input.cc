// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/input.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <unistd.h>

#include "pkg/sys/files.h"

namespace resmgr {
namespace {

constexpr std::string_view kStandardInput = "-";

// By the descriptor: /dev/stdin cannot be opened where it is a socket.
StatusOr<std::string> ReadStandardInput(size_t limit) {
  std::string text;
  std::array<char, size_t{64} * 1024> buffer;
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Unavailable("standard input: {}", std::strerror(errno));
    text.append(buffer.data(), static_cast<size_t>(count));
    if (text.size() > limit) {
      return InvalidArgument("standard input: it has more than {} bytes", limit);
    }
  }
}

}  // namespace

StatusOr<std::string> ReadNamedInput(const std::string& file, size_t limit) {
  return file == kStandardInput ? ReadStandardInput(limit) : ReadInput(file, limit);
}

std::string NameOfInput(const std::string& file) {
  return file == kStandardInput ? "standard input" : file;
}

}  // namespace resmgr
