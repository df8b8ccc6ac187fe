// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/http_status.h"

#include <algorithm>
#include <array>

namespace resmgr::docker {
namespace {

struct Row {
  int status;
  StatusCode code;
  std::string_view reason;
};

// The first row of a status or a code counts; the first of all stands for those without one.
constexpr std::array<Row, 15> kRows = {{
    {500, StatusCode::kUnknown, "Internal Server Error"},
    {400, StatusCode::kInvalidArgument, "Bad Request"},
    {404, StatusCode::kNotFound, "Not Found"},
    {409, StatusCode::kFailedPrecondition, "Conflict"},
    {409, StatusCode::kResourceExhausted, "Conflict"},
    {409, StatusCode::kAlreadyExists, "Conflict"},
    {503, StatusCode::kUnavailable, "Service Unavailable"},
    {503, StatusCode::kDeadlineExceeded, "Service Unavailable"},
    {500, StatusCode::kCancelled, "Internal Server Error"},
    {499, StatusCode::kCancelled, ""},  // the client has given the request up
    {408, StatusCode::kUnknown, "Request Timeout"},
    {413, StatusCode::kUnknown, "Payload Too Large"},
    {431, StatusCode::kUnknown, "Request Header Fields Too Large"},
    {501, StatusCode::kUnknown, "Not Implemented"},
    {502, StatusCode::kUnknown, "Bad Gateway"},
}};

template <typename Key>
const Row& Find(Key key, Key Row::*member) {
  const auto* const found = std::ranges::find(kRows, key, member);
  return found == kRows.end() ? kRows.front() : *found;
}

}  // namespace

StatusCode CodeOfStatus(int http_status) {
  return http_status < 400 ? StatusCode::kOk : Find(http_status, &Row::status).code;
}

int StatusOfCode(StatusCode code) {
  return Find(code, &Row::code).status;
}

std::string_view ReasonOf(int http_status) {
  return Find(http_status, &Row::status).reason;
}

}  // namespace resmgr::docker
