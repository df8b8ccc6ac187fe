// SPDX-License-Identifier: Apache-2.0
#include "pkg/cmdline/print_out.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace resmgr {

Status PrintOut(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return OkStatus();
  return Unavailable("the output cannot be written: {}", std::generic_category().message(errno));
}

}  // namespace resmgr
