// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/problems.h"

#include "pkg/base/parse.h"

namespace resmgr {

namespace {

constexpr std::string_view kMore = "there are more mistakes, which are not listed";

}  // namespace

void Problems::Add(const Status& status, std::string_view origin) {
  if (status.ok()) return;
  for (const std::string_view line : Split(Message(status), '\n')) {
    if (line == kMore || !open()) {
      more_ = true;
    } else {
      lines_.push_back(fmt::format("{}{}{}", origin, origin.empty() ? "" : ": ", line));
    }
  }
}

Status Problems::ToStatus() const {
  if (lines_.empty()) return OkStatus();
  return InvalidArgument("{}{}{}", fmt::join(lines_, "\n"), more_ ? "\n" : "", more_ ? kMore : "");
}

std::string OneLine(std::string_view message) {
  return fmt::format("{}", fmt::join(Split(message, '\n'), "; "));
}

}  // namespace resmgr
