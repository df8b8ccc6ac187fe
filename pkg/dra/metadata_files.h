// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/claims/claim.h"

namespace resmgr::dra {

// Writes a file as AtomicWriteFile does. Blocks.
using WriteFileFunction =
    std::function<Status(const std::string& path, std::string_view data, mode_t mode)>;

// Where the files of claims are, and how they are written. All of it blocks.
struct ClaimDisk {
  std::string cdi{};               // directory of CDI files
  std::string metadata{};          // directory with one directory for each claim's metadata
  std::string metadata_on_host{};  // its path as runtimes know it
  WriteFileFunction write{};
};

// Makes directories that are missing.
Status MakeClaimDirectory(const std::string& directory);
// OK: there is no such file.
Status RemoveClaimFile(const std::string& path);

// Brings the metadata files of a claim, and the CDI file that mounts them, to what the claim has
// now. A file that changes gets a higher generation; the CDI file comes last, so that it never
// mounts what is not there. kInvalidArgument: a request's name can be no part of a path.
Status WriteMetadata(const ClaimDisk& disk, const Claim& claim, const ClaimGrant& grant);
// The CDI file goes last: as long as it is there, so may be the rest.
Status RemoveMetadata(const ClaimDisk& disk, const std::string& uid);
// Whether the claim has a directory or a CDI file of metadata: a kill leaves either without the
// other.
bool HasMetadata(const ClaimDisk& disk, const std::string& uid);
// Claims that have a directory of metadata.
StatusOr<std::vector<std::string>> ClaimsWithMetadata(const ClaimDisk& disk);

}  // namespace resmgr::dra
