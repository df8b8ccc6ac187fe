// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/claims/claim.h"

namespace resmgr::dra {

// Device metadata (Kubernetes KEP-5304, metadata.resource.k8s.io/v1beta1): a file for each request
// of a claim, by which its containers read what they have. A second CDI device mounts the directory
// of that file, so that a container sees the file that takes its place. Pure functions; the claim's
// uid is one that IsClaimUid accepts, and it names its driver.

// The names of its requests, each once.
std::vector<std::string> RequestsOf(const Claim& claim);

// The content of the file of a request: JSON with this generation and the CPUs of the grant that
// containers see.
std::string MetadataText(const Claim& claim, const ClaimGrant& grant, std::string_view request,
                         int64_t generation);
// The generation of such a text; 0: it has none.
int64_t GenerationOf(std::string_view text);

// "DRIVER/metadata=UID_REQUEST".
std::string MetadataDevice(std::string_view driver, std::string_view uid, std::string_view request);
// The CDI file with these devices of a claim. `directory`: of the claim's metadata, by the host's
// path; each request has a directory below it.
std::string MetadataCdiSpec(const Claim& claim, const std::string& directory);
// "cri-resmgr.intel.com-metadata_claim-UID.json".
std::string MetadataCdiFileName(std::string_view uid);
// The UID in the name of such a file, also of one that is being written; nullopt for others.
std::optional<std::string> UidOfMetadataCdiFile(std::string_view file_name);

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
// Removes the CDI file last: as long as it exists, the other files may exist, too.
Status RemoveMetadata(const ClaimDisk& disk, const std::string& uid);
// Whether the claim has a directory or a CDI file of metadata: a kill leaves either without the
// other.
bool HasMetadata(const ClaimDisk& disk, const std::string& uid);
// Claims that have a directory of metadata.
StatusOr<std::vector<std::string>> ClaimsWithMetadata(const ClaimDisk& disk);

}  // namespace resmgr::dra
