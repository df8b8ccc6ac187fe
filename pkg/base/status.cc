// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/status.h"

#include <array>
#include <cctype>

namespace resmgr {

namespace {

constexpr std::array<std::string_view, 17> kCodeNames = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};

}  // namespace

std::string_view Message(const Status& status) {
  const auto message = status.message();
  return {message.data(), message.size()};
}

std::string_view CodeName(StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return index < kCodeNames.size() ? kCodeNames[index] : "UNKNOWN";
}

std::string Describe(const Status& status) {
  std::string text;
  for (const char c : CodeName(status.code())) {
    text += c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (!status.ok()) text.append(": ").append(Message(status));
  return text;
}

Status Annotate(const Status& status, std::string_view context) {
  if (status.ok()) return status;
  return MakeStatus(status.code(), fmt::format("{}: {}", context, Message(status)));
}

Status MakeStatus(StatusCode code, std::string_view message) {
  return Status(code, {message.data(), message.size()});
}

}  // namespace resmgr
