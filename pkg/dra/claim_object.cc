// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/claim_object.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/claims/claim_options.h"
#include "pkg/kube/names.h"
#include "pkg/kube/quantity.h"

namespace resmgr::dra {
namespace {

using Json = nlohmann::json;
using json_path::Find;
using json_path::TextAt;

constexpr size_t kShownText = 64;     // bytes of a name in a message
constexpr size_t kLongestName = 253;  // bytes of a name in the API
// The annotation of claims that were made from a template.
constexpr const char* kPodClaimAnnotation = "resource.kubernetes.io/pod-claim-name";
constexpr int64_t kMilliOfOne = 1000;  // thousandths of a CPU

std::string Shown(std::string_view text) {
  return Printable(text, kShownText);
}

// "main" of "main/sub".
std::string MainRequest(const std::string& request) {
  return request.substr(0, request.find('/'));
}

// A quantity is a JSON string, or a number if the author of the object wrote one.
StatusOr<MilliCpu> MilliOf(const Json& quantity) {
  if (quantity.is_string()) return ParseMilliCpu(quantity.get_ref<const std::string&>());
  if (quantity.is_number()) return ParseMilliCpu(JsonText(quantity));
  return InvalidArgument("it is no quantity");
}

// The API server may leave the driver's domain out of a capacity's name.
const Json* ConsumedCpus(const Json& result, const Driver& driver) {
  const Json* const consumed = Find(result, {"consumedCapacity"});
  if (consumed == nullptr) return nullptr;
  const Json* const qualified = Find(*consumed, {driver.Capacity()});
  return qualified != nullptr ? qualified : Find(*consumed, {"cpu"});
}

StatusOr<int> CpusOf(const Json& result, const Driver& driver) {
  if (const Json* const admin = Find(result, {"adminAccess"}); admin != nullptr && *admin == true)
    return InvalidArgument("adminAccess is not supported: it consumes no CPUs");
  const Json* const consumed = ConsumedCpus(result, driver);
  if (consumed == nullptr) {
    return InvalidArgument(
        "the allocation has no consumedCapacity {}: the cluster needs the feature gate "
        "DRAConsumableCapacity",
        driver.Capacity());
  }
  const StatusOr<MilliCpu> milli = MilliOf(*consumed);
  if (!milli.ok()) return Annotate(milli.status(), driver.Capacity());
  const int64_t cpus = milli->value / kMilliOfOne;
  if (cpus < 1 || cpus > CpuSet::kBits || milli->value % kMilliOfOne != 0) {
    return InvalidArgument("{} CPUs are not a whole number of them from 1 to {}",
                           FormatMilliCpu(*milli), CpuSet::kBits);
  }
  return static_cast<int>(cpus);
}

Status AddResult(const Json& result, const Driver& driver, AllocatedClaim& claim) {
  if (TextAt(result, {"driver"}) != driver.name) return OkStatus();
  ClaimDeviceRef device{.request = TextAt(result, {"request"}),
                        .pool = TextAt(result, {"pool"}),
                        .share_id = TextAt(result, {"shareID"})};
  ClaimPart part{.request = MainRequest(device.request), .device = TextAt(result, {"device"})};
  for (const std::string& name : {device.request, device.pool, device.share_id}) {
    if (name.size() > kLongestName)
      return InvalidArgument("the name \"{}...\" has {} bytes", Shown(name), name.size());
  }
  part.node = driver.NodeOfDevice(part.device);
  if (!part.node) part.l3_of = driver.CpuOfCacheDevice(part.device);
  if (!part.node && !part.l3_of)
    return InvalidArgument("\"{}\" is no device of {}", Shown(part.device), driver.name);
  const StatusOr<int> cpus = CpusOf(result, driver);
  if (!cpus.ok()) return Annotate(cpus.status(), fmt::format("device {}", part.device));
  part.cpus = *cpus;
  claim.claim.parts.push_back(std::move(part));
  claim.claim.pools.push_back(device.pool);
  claim.devices.push_back(std::move(device));
  return OkStatus();
}

Status ReadParameter(const std::string& key, const Json& value, ClaimOptions& options) {
  if (key == "apiVersion" || key == "kind") return OkStatus();
  for (const auto& [name, option] : std::initializer_list<std::pair<std::string_view, bool*>>{
           {"wholeCores", &options.whole_cores},
           {"l3", &options.l3},
           {"avoidSiblings", &options.avoid_siblings}}) {
    if (key != name || !value.is_boolean()) continue;
    *option = value.get<bool>();
    return OkStatus();
  }
  if (key == "coreType" && value.is_string()) {
    options.core_type = ParseCoreType(value.get_ref<const std::string&>());
    if (options.core_type) return OkStatus();
  }
  if (key == "shareWithin" && value == "pod") {
    options.share_within_pod = true;
    return OkStatus();
  }
  return InvalidArgument("parameters of {}: {}: {} is not supported", kParametersKind, Shown(key),
                         Shown(JsonText(value)));
}

Status ReadParameters(const Json& parameters, ClaimOptions& options) {
  const std::string version = TextAt(parameters, {"apiVersion"});
  const std::string kind = TextAt(parameters, {"kind"});
  if (version != kParametersVersion || kind != kParametersKind) {
    return InvalidArgument("parameters of the kind \"{}\" \"{}\" are not {} {}", Shown(version),
                           Shown(kind), kParametersVersion, kParametersKind);
  }
  for (const auto& [key, value] : parameters.items())
    RESMGR_RETURN_IF_ERROR(ReadParameter(key, value, options));
  return OkStatus();
}

// Whether a configuration applies to the results of this request. A configuration that names a main
// request applies to all of its subrequests.
bool IsFor(const Json& config, const std::string& request) {
  const Json* const requests = Find(config, {"requests"});
  if (requests == nullptr || !requests->is_array() || requests->empty()) return true;
  return std::ranges::any_of(*requests, [&request](const Json& named) {
    return named == request || named == MainRequest(request);
  });
}

// Parameters of the claim override those of the class.
StatusOr<ClaimOptions> OptionsOf(const std::string& request, const Json& configs,
                                 const Driver& driver) {
  ClaimOptions options;
  for (const std::string_view source : {"FromClass", "FromClaim"}) {
    for (const Json& config : configs) {
      if (TextAt(config, {"source"}) != source || !IsFor(config, request)) continue;
      if (TextAt(config, {"opaque", "driver"}) != driver.name) continue;
      const Json* const parameters = Find(config, {"opaque", "parameters"});
      if (parameters == nullptr) continue;
      RESMGR_RETURN_IF_ERROR(ReadParameters(*parameters, options));
    }
  }
  return options;
}

// All requests must have the same parameters, since the policy decides about a claim as a whole.
Status ReadOptions(const Json& configs, const Driver& driver, AllocatedClaim& claim) {
  const std::string& first = claim.devices.front().request;
  RESMGR_ASSIGN_OR_RETURN(claim.claim.options, OptionsOf(first, configs, driver));
  for (const ClaimDeviceRef& device : claim.devices) {
    RESMGR_ASSIGN_OR_RETURN(const ClaimOptions options, OptionsOf(device.request, configs, driver));
    if (options == claim.claim.options) continue;
    return InvalidArgument(
        "requests {} and {} have different parameters: all requests of a claim need the same, so "
        "make two claims",
        Shown(first), Shown(device.request));
  }
  return OkStatus();
}

// Only pods are returned: other consumers do not count on this node.
std::vector<std::string> PodsOf(const Json& object) {
  std::vector<std::string> pods;
  const Json* const consumers = Find(object, {"status", "reservedFor"});
  if (consumers == nullptr || !consumers->is_array()) return pods;
  for (const Json& consumer : *consumers) {
    if (TextAt(consumer, {"resource"}) != "pods" || !TextAt(consumer, {"apiGroup"}).empty())
      continue;
    std::string uid = TextAt(consumer, {"uid"});
    if (IsClaimUid(uid) && pods.size() < kMostClaimPods) pods.push_back(std::move(uid));
  }
  std::ranges::sort(pods);
  return pods;
}

StatusOr<Json> ReadClaimObject(std::string_view text) {
  if (text.size() > kLongestClaimObject)
    return InvalidArgument("a ResourceClaim of {} bytes is too long", text.size());
  std::optional<Json> object = ParseJson(text);
  if (!object || !object->is_object()) return InvalidArgument("the ResourceClaim is not JSON");
  return *std::move(object);
}

Status CheckClaimName(const Json& object, const ClaimName& asked) {
  if (TextAt(object, {"metadata", "name"}) != asked.name ||
      TextAt(object, {"metadata", "namespace"}) != asked.namespace_name)
    return InvalidArgument("the answer is not the ResourceClaim {}", Shown(asked.ToString()));
  return OkStatus();
}

Status CheckIdentity(const Json& object, const ClaimName& asked) {
  RESMGR_RETURN_IF_ERROR(CheckClaimName(object, asked));
  const std::string uid = TextAt(object, {"metadata", "uid"});
  if (uid == asked.uid) return OkStatus();
  return FailedPrecondition("the ResourceClaim {} was replaced: its UID is {}, and not {}",
                            Shown(asked.ToString()), Shown(uid), Shown(asked.uid));
}

}  // namespace

StatusOr<AllocatedClaim> ParseClaimObject(std::string_view text, const ClaimName& asked,
                                          const Driver& driver) {
  RESMGR_ASSIGN_OR_RETURN(const Json object, ReadClaimObject(text));
  RESMGR_RETURN_IF_ERROR(CheckIdentity(object, asked));
  const Json* const results = Find(object, {"status", "allocation", "devices", "results"});
  if (results == nullptr || !results->is_array()) {
    return FailedPrecondition("the ResourceClaim {} has no allocation", Shown(asked.ToString()));
  }
  if (results->size() > kMostClaimResults)
    return InvalidArgument("an allocation of {} devices is too long", results->size());
  AllocatedClaim claim;
  claim.claim.uid = asked.uid;
  claim.claim.namespace_name = asked.namespace_name;
  claim.claim.name = asked.name;
  claim.claim.pods = PodsOf(object);
  claim.claim.driver = driver.name;
  claim.claim.pod_claim = TextAt(object, {"metadata", "annotations", kPodClaimAnnotation});
  if (!IsSubdomain(claim.claim.pod_claim)) claim.claim.pod_claim.clear();
  for (const Json& result : *results)
    RESMGR_RETURN_IF_ERROR(AddResult(result, driver, claim));
  const Json* const configs = Find(object, {"status", "allocation", "devices", "config"});
  if (configs != nullptr && configs->is_array() && !claim.devices.empty())
    RESMGR_RETURN_IF_ERROR(ReadOptions(*configs, driver, claim));
  return claim;
}

StatusOr<std::string> WhyUnused(std::string_view text, const ClaimName& asked) {
  RESMGR_ASSIGN_OR_RETURN(const Json object, ReadClaimObject(text));
  RESMGR_RETURN_IF_ERROR(CheckClaimName(object, asked));
  const std::string uid = TextAt(object, {"metadata", "uid"});
  if (uid.empty()) return InvalidArgument("the ResourceClaim has no UID");
  if (uid != asked.uid) return std::string("the API server has another claim of this name");
  const auto has = [&object](const char* member) {
    const Json* const value = Find(object, {"status", member});
    return value != nullptr && !value->empty();
  };
  if (has("allocation") || has("reservedFor")) return std::string();
  return std::string("it is neither allocated nor reserved");
}

}  // namespace resmgr::dra
