// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/metadata_files.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/claims/claim_names.h"
#include "pkg/dra/claim_metadata.h"
#include "pkg/kube/names.h"
#include "pkg/sys/errno_status.h"
#include "pkg/sys/files.h"

namespace resmgr::dra {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMetadataMode = 0644;
constexpr mode_t kDirectoryMode = 0755;
constexpr size_t kLongestMetadata = size_t{1} << 20;  // far more than 32 devices need

Status WriteIfOther(const ClaimDisk& disk, const std::string& path, const std::string& text) {
  const StatusOr<std::string> kept = ReadFile(path, text.size() + 1);
  if (kept.ok() && *kept == text) return OkStatus();
  return disk.write(path, text, kMetadataMode);
}

Status WriteRequest(const ClaimDisk& disk, const Claim& claim, const ClaimGrant& grant,
                    const std::string& request) {
  const std::string directory = fmt::format("{}/{}/{}", disk.metadata, claim.uid, request);
  RESMGR_RETURN_IF_ERROR(MakeClaimDirectory(directory));
  // Containers have users of their own.
  if (::chmod(directory.c_str(), kDirectoryMode) != 0)
    return ErrnoStatus(errno, fmt::format("cannot change the mode of {}", directory));
  const std::string path = directory + "/" + MetadataFileName(claim);
  const StatusOr<std::string> kept = ReadFile(path, kLongestMetadata);
  const int64_t generation = kept.ok() ? GenerationOf(*kept) : 0;
  if (kept.ok() && *kept == MetadataText(claim, grant, request, generation)) return OkStatus();
  return disk.write(path, MetadataText(claim, grant, request, generation + 1), kMetadataMode);
}

}  // namespace

Status MakeClaimDirectory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("cannot make {}", directory));
  return OkStatus();
}

Status RemoveClaimFile(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return OkStatus();
  return ErrnoStatus(errno, fmt::format("cannot remove {}", path));
}

Status WriteMetadata(const ClaimDisk& disk, const Claim& claim, const ClaimGrant& grant) {
  for (const std::string& request : RequestsOf(claim)) {
    if (!IsSubdomain(request))
      return InvalidArgument("\"{}\" is not the name of a request", Printable(request, 64));
    RESMGR_RETURN_IF_ERROR(WriteRequest(disk, claim, grant, request));
  }
  RESMGR_RETURN_IF_ERROR(MakeClaimDirectory(disk.cdi));
  return WriteIfOther(disk, disk.cdi + "/" + MetadataCdiFileName(claim.uid),
                      MetadataCdiSpec(claim, disk.metadata_on_host + "/" + claim.uid));
}

Status RemoveMetadata(const ClaimDisk& disk, const std::string& uid) {
  const std::string directory = disk.metadata + "/" + uid;
  std::error_code error;
  fs::remove_all(directory, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("cannot remove {}", directory));
  const std::string spec = disk.cdi + "/" + MetadataCdiFileName(uid);
  RESMGR_RETURN_IF_ERROR(RemoveClaimFile(spec + ".tmp"));  // of a write that did not end
  return RemoveClaimFile(spec);
}

bool HasMetadata(const ClaimDisk& disk, const std::string& uid) {
  return ::access((disk.metadata + "/" + uid).c_str(), F_OK) == 0 ||
         ::access((disk.cdi + "/" + MetadataCdiFileName(uid)).c_str(), F_OK) == 0;
}

StatusOr<std::vector<std::string>> ClaimsWithMetadata(const ClaimDisk& disk) {
  std::vector<std::string> uids;
  std::error_code error;
  fs::directory_iterator at(disk.metadata, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::string name = at->path().filename().string();
    if (IsClaimUid(name)) uids.push_back(std::move(name));
  }
  if (error && error.value() != ENOENT)
    return ErrnoStatus(error.value(), fmt::format("cannot list {}", disk.metadata));
  return uids;
}

}  // namespace resmgr::dra
