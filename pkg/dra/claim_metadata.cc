// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/claim_metadata.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/claims/claim_names.h"
#include "pkg/dra/cdi_files.h"
#include "pkg/kube/names.h"
#include "pkg/sys/files.h"

namespace resmgr::dra {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kMetadataVersion = "metadata.resource.k8s.io/v1beta1";
constexpr std::string_view kMetadataKind = "DeviceMetadata";
// The directory where containers find the files (KEP-5304).
constexpr std::string_view kInContainer = "/var/run/kubernetes.io/dra-device-attributes";
constexpr std::string_view kCdiFilePrefix = "cri-resmgr.intel.com-metadata_claim-";

// The description of one part of the claim.
OrderedJson DeviceOf(const Claim& claim, const ClaimGrant& grant, size_t at) {
  const ClaimPart& part = claim.parts[at];
  OrderedJson attributes = OrderedJson::object();
  if (part.node) attributes["resource.kubernetes.io/numaNode"]["int"] = *part.node;
  if (part.l3_of) attributes[claim.driver + "/cacheL3ID"]["int"] = *part.l3_of;
  if (at < grant.cpus.size()) {
    const CpuSet& seen = at < grant.seen.size() ? grant.seen[at] : grant.cpus[at];
    attributes[claim.driver + "/allocatedNumCPUs"]["int"] = grant.cpus[at].size();
    attributes[claim.driver + "/cpus"]["string"] = seen.ToString();
  }
  OrderedJson device;
  device["driver"] = claim.driver;
  device["pool"] = at < claim.pools.size() ? claim.pools[at] : "";
  device["name"] = part.device;
  device["attributes"] = std::move(attributes);
  return device;
}

std::string DirectoryInContainer(const Claim& claim, const std::string& request) {
  return claim.pod_claim.empty()
             ? fmt::format("{}/resourceclaims/{}/{}", kInContainer, claim.name, request)
             : fmt::format("{}/resourceclaimtemplates/{}/{}", kInContainer, claim.pod_claim,
                           request);
}

constexpr mode_t kMetadataMode = 0644;
constexpr mode_t kDirectoryMode = 0755;
constexpr size_t kLongestMetadata = size_t{1} << 20;  // far more than 32 devices need

std::string MetadataFileName(const Claim& claim) {
  return claim.driver + "-metadata.json";
}

Status WriteIfOther(const ClaimDisk& disk, const std::string& path, const std::string& text) {
  const StatusOr<std::string> kept = ReadFile(path, text.size() + 1);
  if (kept.ok() && *kept == text) return OkStatus();
  return disk.write(path, text, kMetadataMode);
}

Status WriteRequest(const ClaimDisk& disk, const Claim& claim, const ClaimGrant& grant,
                    const std::string& request) {
  const std::string directory = fmt::format("{}/{}/{}", disk.metadata, claim.uid, request);
  RESMGR_RETURN_IF_ERROR(MakeClaimDirectory(directory));
  // Containers may run as any user, so all must be able to read the directory.
  if (::chmod(directory.c_str(), kDirectoryMode) != 0)
    return ErrnoStatus(errno, fmt::format("cannot change the mode of {}", directory));
  const std::string path = directory + "/" + MetadataFileName(claim);
  const StatusOr<std::string> kept = ReadFile(path, kLongestMetadata);
  const int64_t generation = kept.ok() ? GenerationOf(*kept) : 0;
  if (kept.ok() && *kept == MetadataText(claim, grant, request, generation)) return OkStatus();
  return disk.write(path, MetadataText(claim, grant, request, generation + 1), kMetadataMode);
}

}  // namespace

std::vector<std::string> RequestsOf(const Claim& claim) {
  std::vector<std::string> requests;
  for (const ClaimPart& part : claim.parts) {
    if (std::ranges::find(requests, part.request) == requests.end())
      requests.push_back(part.request);
  }
  return requests;
}

std::string MetadataText(const Claim& claim, const ClaimGrant& grant, std::string_view request,
                         int64_t generation) {
  OrderedJson devices = OrderedJson::array();
  for (size_t at = 0; at < claim.parts.size(); ++at)
    if (claim.parts[at].request == request) devices.push_back(DeviceOf(claim, grant, at));
  OrderedJson object;
  object["apiVersion"] = kMetadataVersion;
  object["kind"] = kMetadataKind;
  object["metadata"] = {{"name", claim.name},
                        {"namespace", claim.namespace_name},
                        {"uid", claim.uid},
                        {"generation", generation}};
  if (!claim.pod_claim.empty()) object["podClaimName"] = claim.pod_claim;
  OrderedJson one;
  one["name"] = request;
  one["devices"] = std::move(devices);
  object["requests"] = OrderedJson::array({std::move(one)});
  return OrderedJsonText(object) + "\n";
}

int64_t GenerationOf(std::string_view text) {
  const std::optional<nlohmann::json> object = ParseJson(text);
  if (!object) return 0;
  const nlohmann::json* const generation = json_path::Find(*object, {"metadata", "generation"});
  if (generation == nullptr || !generation->is_number_integer()) return 0;
  return std::max<int64_t>(0, generation->get<int64_t>());
}

std::string MetadataDevice(std::string_view driver, std::string_view uid,
                           std::string_view request) {
  return fmt::format("{}/metadata={}_{}", driver, uid, request);
}

std::string MetadataCdiSpec(const Claim& claim, const std::string& directory) {
  OrderedJson devices = OrderedJson::array();
  for (const std::string& request : RequestsOf(claim)) {
    OrderedJson mount;
    mount["hostPath"] = fmt::format("{}/{}", directory, request);
    mount["containerPath"] = DirectoryInContainer(claim, request);
    mount["options"] = {"ro", "bind"};
    OrderedJson device;
    device["name"] = fmt::format("{}_{}", claim.uid, request);
    device["containerEdits"]["mounts"] = OrderedJson::array({std::move(mount)});
    devices.push_back(std::move(device));
  }
  OrderedJson spec;
  spec["cdiVersion"] = kCdiVersion;
  spec["kind"] = claim.driver + "/metadata";
  spec["devices"] = std::move(devices);
  return OrderedJsonText(spec) + "\n";
}

std::string MetadataCdiFileName(std::string_view uid) {
  return fmt::format("{}{}{}", kCdiFilePrefix, uid, kCdiExtension);
}

std::optional<std::string> UidOfMetadataCdiFile(std::string_view file_name) {
  return UidInFileName(kCdiFilePrefix, file_name);
}

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
  RESMGR_RETURN_IF_ERROR(RemoveClaimFile(spec + ".tmp"));  // left by an unfinished write
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
