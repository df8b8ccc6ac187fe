// SPDX-License-Identifier: Apache-2.0
#include "agent/http.h"

#include <algorithm>

#include "agent/json_path.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"

namespace resmgr::agent {
namespace {

constexpr int kBadRequest = 400;
constexpr int kForbidden = 403;
constexpr int kMissing = 404;
constexpr int kConflict = 409;
constexpr int kGone = 410;
constexpr int kTooLarge = 413;
constexpr int kUnprocessable = 422;
constexpr int kTooManyRequests = 429;

StatusCode CodeOf(int http_status) {
  switch (http_status) {
    case kUnauthorized:
    case kForbidden:
      return StatusCode::kPermissionDenied;
    case kMissing:
      return StatusCode::kNotFound;
    case kConflict:
      return StatusCode::kAborted;
    case kGone:
      return StatusCode::kOutOfRange;
    case kTooManyRequests:
      return StatusCode::kUnavailable;
    default:
      return http_status / 100 == 4 ? StatusCode::kInvalidArgument : StatusCode::kUnavailable;
  }
}

}  // namespace

std::string MetadataOnly(std::string_view kind) {
  return fmt::format("{};as={};g=meta.k8s.io;v=v1,{}", kJsonType, kind, kJsonType);
}

std::chrono::seconds WaitAskedFor(const HttpReply& reply) {
  constexpr std::chrono::seconds kLongest{60};
  return std::min(reply.retry_after.value_or(std::chrono::seconds(0)), kLongest);
}

bool RefusesContent(const HttpReply& reply) {
  return reply.status == kBadRequest || reply.status == kForbidden || reply.status == kTooLarge ||
         reply.status == kUnprocessable;
}

Status StatusOfReply(const HttpReply& reply) {
  if (reply.status / 100 == 2) return OkStatus();
  std::string words;
  if (const auto json = ParseJson(reply.body)) words = TextAt(*json, {"message"});
  if (words.empty()) words = reply.body;
  return MakeStatus(CodeOf(reply.status),
                    fmt::format("the API server answers {}: {}", reply.status, Printable(words)));
}

}  // namespace resmgr::agent
