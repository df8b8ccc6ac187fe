// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <fmt/format.h>

namespace resmgr {

// The one error type of the project. Replies of a runtime are never turned into it: they pass to
// the kubelet as they came. The codes mean:
//
//   kInvalidArgument     a request or a configuration is wrong; the message says where
//   kNotFound            an unknown id, or hardware that this machine lacks
//   kAlreadyExists       an id or a name is taken
//   kResourceExhausted   the policy has no room; the message names the need and the shortage
//   kFailedPrecondition  wrong state of life for this operation
//   kUnavailable         the runtime (or another peer) is not there
//   kDeadlineExceeded    a peer did not answer in time
//   kUnimplemented       not served here
//   kInternal            a bug of ours
using Status = absl::Status;
using StatusCode = absl::StatusCode;
template <typename T>
using StatusOr = absl::StatusOr<T>;

inline Status OkStatus() {
  return Status();
}

// The message as a std type (Debian's absl has a string_view of its own).
std::string_view Message(const Status& status);

// "not found: no container abc" for users and logs.
std::string Describe(const Status& status);

// The same code with "context: " before the message.
Status Annotate(const Status& status, std::string_view context);

// Upper-case gRPC name ("RESOURCE_EXHAUSTED").
std::string_view CodeName(StatusCode code);

Status MakeStatus(StatusCode code, std::string_view message);

// Cold: the compiler keeps the code that makes errors out of the hot code.
#define RESMGR_STATUS_MAKER(Name)                                                             \
  template <typename... Args>                                                                 \
  [[gnu::cold]] Status Name(fmt::format_string<Args...> format, Args&&... args) {             \
    return MakeStatus(StatusCode::k##Name, fmt::format(format, std::forward<Args>(args)...)); \
  }
RESMGR_STATUS_MAKER(InvalidArgument)
RESMGR_STATUS_MAKER(NotFound)
RESMGR_STATUS_MAKER(AlreadyExists)
RESMGR_STATUS_MAKER(ResourceExhausted)
RESMGR_STATUS_MAKER(FailedPrecondition)
RESMGR_STATUS_MAKER(Unavailable)
RESMGR_STATUS_MAKER(DeadlineExceeded)
RESMGR_STATUS_MAKER(Unimplemented)
RESMGR_STATUS_MAKER(Internal)
#undef RESMGR_STATUS_MAKER

}  // namespace resmgr

// Returns from the enclosing function when the expression's status is not OK.
#define RESMGR_RETURN_IF_ERROR(expression)                                            \
  do {                                                                                \
    if (auto resmgr_status = (expression); !resmgr_status.ok()) return resmgr_status; \
  } while (false)

#define RESMGR_CONCAT_INNER(a, b) a##b
#define RESMGR_CONCAT(a, b) RESMGR_CONCAT_INNER(a, b)

// RESMGR_ASSIGN_OR_RETURN(auto x, F()): assigns the value or returns the status.
#define RESMGR_ASSIGN_OR_RETURN(target, expression) \
  RESMGR_ASSIGN_OR_RETURN_IMPL(RESMGR_CONCAT(resmgr_or_, __LINE__), target, expression)
#define RESMGR_ASSIGN_OR_RETURN_IMPL(result, target, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) return result.status();                      \
  target = *std::move(result)
