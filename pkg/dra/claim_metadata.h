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
// of a claim, in which its containers read what they have. A second CDI device mounts the directory
// of that file, so that containers also see a file that replaces it. Pure functions; IsClaimUid
// must accept the claim's uid, and the claim must name its driver.

// The names of the claim's requests, each once.
std::vector<std::string> RequestsOf(const Claim& claim);

// The content of a request's file: JSON with this generation and with those CPUs of the grant that
// containers see.
std::string MetadataText(const Claim& claim, const ClaimGrant& grant, std::string_view request,
                         int64_t generation);
// The generation in a text of MetadataText; 0 if it has none.
int64_t GenerationOf(std::string_view text);

// "DRIVER/metadata=UID_REQUEST".
std::string MetadataDevice(std::string_view driver, std::string_view uid, std::string_view request);
// The CDI file with the metadata devices of a claim. `directory`: the claim's metadata directory by
// its path on the host; each request has a directory below it.
std::string MetadataCdiSpec(const Claim& claim, const std::string& directory);
// "cri-resmgr.intel.com-metadata_claim-UID.json".
std::string MetadataCdiFileName(std::string_view uid);
// The UID in a name that MetadataCdiFileName makes, also of a file that is being written; nullopt
// for other files.
std::optional<std::string> UidOfMetadataCdiFile(std::string_view file_name);

// A function that writes a file as AtomicWriteFile does. Blocks.
using WriteFileFunction =
    std::function<Status(const std::string& path, std::string_view data, mode_t mode)>;

// Where the files of claims are, and how they are written. All functions with it block.
struct ClaimDisk {
  std::string cdi{};               // directory of CDI files
  std::string metadata{};          // directory with one directory for each claim's metadata
  std::string metadata_on_host{};  // its path as runtimes know it
  WriteFileFunction write{};
};

// Makes directories that are missing.
Status MakeClaimDirectory(const std::string& directory);
// Removes a file; OK if there is none.
Status RemoveClaimFile(const std::string& path);

// Brings the metadata files of a claim, and the CDI file that mounts them, up to date. A file that
// changes gets a higher generation; the CDI file is written last, so that it never mounts a missing
// directory. kInvalidArgument: a request's name cannot be part of a path.
Status WriteMetadata(const ClaimDisk& disk, const Claim& claim, const ClaimGrant& grant);
// Removes the CDI file last, so that its presence shows that other files may be left.
Status RemoveMetadata(const ClaimDisk& disk, const std::string& uid);
// Whether the claim has a metadata directory or a metadata CDI file: if the daemon is killed, one
// may exist without the other.
bool HasMetadata(const ClaimDisk& disk, const std::string& uid);
// Claims that have a directory of metadata.
StatusOr<std::vector<std::string>> ClaimsWithMetadata(const ClaimDisk& disk);

}  // namespace resmgr::dra
