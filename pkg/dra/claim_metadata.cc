// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/claim_metadata.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pkg/base/json.h"
#include "pkg/base/json_path.h"
#include "pkg/dra/cdi_spec.h"

namespace resmgr::dra {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kMetadataVersion = "metadata.resource.k8s.io/v1beta1";
constexpr std::string_view kMetadataKind = "DeviceMetadata";
// Where containers find the files, by the protocol.
constexpr std::string_view kInContainer = "/var/run/kubernetes.io/dra-device-attributes";
constexpr std::string_view kCdiFilePrefix = "cri-resmgr.intel.com-metadata_claim-";

// One part of the claim.
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

std::string MetadataFileName(const Claim& claim) {
  return claim.driver + "-metadata.json";
}

std::string MetadataDevice(std::string_view driver, std::string_view uid,
                           std::string_view request) {
  return fmt::format("{}/metadata={}_{}", driver, uid, request);
}

std::string MetadataCdiSpec(const Claim& claim, const std::string& directory) {
  OrderedJson devices = OrderedJson::array();
  for (const std::string& request : RequestsOf(claim)) {
    OrderedJson mount;
    mount["hostPath"] = directory + "/" + request;
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

}  // namespace resmgr::dra
