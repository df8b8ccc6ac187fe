// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/errno_status.h"

#include <cerrno>
#include <system_error>

namespace resmgr {
namespace {

StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return StatusCode::kNotFound;
    case EEXIST:
      return StatusCode::kAlreadyExists;
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return StatusCode::kInvalidArgument;
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC:
      return StatusCode::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS:
      return StatusCode::kFailedPrecondition;
    default:
      return StatusCode::kUnavailable;
  }
}

}  // namespace

Status ErrnoStatus(int error, std::string_view what) {
  return MakeStatus(CodeOf(error),
                    fmt::format("{}: {}", what, std::generic_category().message(error)));
}

}  // namespace resmgr
