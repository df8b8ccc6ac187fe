// SPDX-License-Identifier: Apache-2.0
#include "agent/topology_writer.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/kube/names.h"
#include "pkg/kube/pod_fingerprint.h"
#include "pkg/kube/report_limits.h"
#include "pkg/log/log.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr::agent {
namespace {

using cri_resmgr::v1::TopologyAmount;
using cri_resmgr::v1::TopologyPod;
using cri_resmgr::v1::TopologyPool;
using cri_resmgr::v1::TopologyZone;
using google::protobuf::util::MessageDifferencer;

// As long as the server does not answer, the request is tried again; a missing or conflicting
// object ends the tries.
constexpr int kAllTries = std::numeric_limits<int>::max();

std::vector<int64_t> AvailableCpus(const ShowTopologyRequest& view) {
  std::vector<int64_t> available;
  for (const TopologyZone& zone : view.zones())
    for (const TopologyAmount& amount : zone.amounts())
      if (amount.name() == "cpu") available.push_back(amount.available());
  return available;
}

std::vector<PodName> PodsOf(const ShowTopologyRequest& view) {
  std::vector<PodName> pods;
  for (const TopologyPod& pod : view.pods())
    pods.push_back({pod.pod_namespace(), pod.pod()});
  return pods;
}

// The set of a list that was checked.
CpuSet CheckedSet(const std::string& list) {
  return CpuSet::Parse(list).value_or(CpuSet());
}

// Whether the agent has applied the object itself.
bool IsOwn(const Json& object) {
  const Json* const managers = Find(object, {"metadata", "managedFields"});
  if (managers == nullptr || !managers->is_array()) return false;
  return std::ranges::any_of(*managers, [](const Json& manager) {
    return TextAt(manager, {"manager"}) == kAgentName && TextAt(manager, {"operation"}) == "Apply";
  });
}

// The API server's words for a conflict of apply, in one field or in several; they differ from
// those for a write that only came in between.
constexpr std::string_view kApplyConflict = "Apply failed with ";

bool IsOfAnotherWriter(const Status& status) {
  return status.code() == StatusCode::kAborted &&
         Message(status).find(kApplyConflict) != std::string_view::npos;
}

constexpr std::string_view kTopologyGroup = "topology.node.k8s.io/v1alpha2";
constexpr std::string_view kOwnAttributes = "cri-resource-manager.intel.com/";
// Far more pods than a node has.
constexpr int kMostTopologyPods = 4096;
constexpr int kMostTopologyAmounts = 16;
constexpr size_t kLongestPoolName = 1024;   // bytes; a name of 253 bytes, each shown as four
constexpr size_t kMostTopologyList = 8192;  // bytes of a list of CPUs
// Least topologyManagerMaxNUMANodes for the scheduler.
constexpr int kLeastMaxNodes = 2;

std::string ZoneName(int index) {
  return fmt::format("node-{}", index);
}

Json TopologyAttribute(std::string_view name, std::string_view value) {
  return {{"name", name}, {"value", value}};
}

Json OwnAttribute(std::string_view name, std::string_view value) {
  return TopologyAttribute(fmt::format("{}{}", kOwnAttributes, name), value);
}

// Adds the lists that are not empty. The API server of Kubernetes 1.20 takes "" in an apply patch
// for null, and refuses the object.
void AddCpus(const CpuSet& all, const CpuSet& exclusive, Json& attributes) {
  if (!all.empty()) attributes.push_back(OwnAttribute("cpus", all.ToString()));
  if (!exclusive.empty()) attributes.push_back(OwnAttribute("exclusive", exclusive.ToString()));
}

Status CheckAmount(const TopologyAmount& amount) {
  const bool known = amount.name() == "cpu" || amount.name() == "memory" ||
                     (amount.name().starts_with("hugepages-") && IsLabelKey(amount.name()));
  if (!known)
    return InvalidArgument("\"{}\" is not a resource of a zone", Printable(amount.name(), 64));
  const bool ordered = 0 <= amount.available() && amount.available() <= amount.allocatable() &&
                       amount.allocatable() <= amount.capacity();
  if (!ordered) {
    return InvalidArgument("{}: available {}, allocatable {} and capacity {} are not in this order",
                           amount.name(), amount.available(), amount.allocatable(),
                           amount.capacity());
  }
  return OkStatus();
}

Status CheckZone(const TopologyZone& zone, int zones) {
  RESMGR_ASSIGN_OR_RETURN(const CpuSet cpus, CpuSet::Parse(zone.cpus()));
  RESMGR_RETURN_IF_ERROR(CpuSet::Parse(zone.exclusive()).status());
  if (zone.numa_id() < 0) return InvalidArgument("{} is not a NUMA node", zone.numa_id());
  if (zone.distances().size() != zones) {
    return InvalidArgument("NUMA node {}: {} distances to {} zones", zone.numa_id(),
                           zone.distances().size(), zones);
  }
  if (zone.amounts().size() > kMostTopologyAmounts)
    return InvalidArgument("NUMA node {}: {} resources", zone.numa_id(), zone.amounts().size());
  if (cpus.ToString().size() > kMostTopologyList)
    return InvalidArgument("NUMA node {}: too many CPUs", zone.numa_id());
  for (const TopologyAmount& amount : zone.amounts())
    RESMGR_RETURN_IF_ERROR(CheckAmount(amount));
  return OkStatus();
}

Json ZoneObject(const TopologyZone& zone, int index) {
  Json costs = Json::array();
  for (int to = 0; to < zone.distances_size(); ++to)
    costs.push_back({{"name", ZoneName(to)}, {"value", zone.distances(to)}});
  Json resources = Json::array();
  for (const TopologyAmount& amount : zone.amounts()) {
    resources.push_back({{"name", amount.name()},
                         {"capacity", fmt::format("{}", amount.capacity())},
                         {"allocatable", fmt::format("{}", amount.allocatable())},
                         {"available", fmt::format("{}", amount.available())}});
  }
  Json attributes = Json::array();
  attributes.push_back(OwnAttribute("numa-id", fmt::format("{}", zone.numa_id())));
  AddCpus(CheckedSet(zone.cpus()), CheckedSet(zone.exclusive()), attributes);
  return {{"name", ZoneName(index)},
          {"type", "Node"},
          {"costs", std::move(costs)},
          {"attributes", std::move(attributes)},
          {"resources", std::move(resources)}};
}

// Zones need unique names, so the prefix distinguishes pools from NUMA nodes.
std::string PoolZoneName(const TopologyPool& pool) {
  return fmt::format("pool:{}", pool.name());
}

Status CheckPools(const ShowTopologyRequest& view) {
  if (view.pools().size() > kMostViewPools)
    return InvalidArgument("{} pools: {} are the limit", view.pools().size(), kMostViewPools);
  std::set<std::string_view> names;
  for (const TopologyPool& pool : view.pools()) {
    RESMGR_RETURN_IF_ERROR(CpuSet::Parse(pool.cpus()).status());
    RESMGR_RETURN_IF_ERROR(CpuSet::Parse(pool.exclusive()).status());
    const bool valid = !pool.name().empty() && pool.name().size() <= kLongestPoolName &&
                       Printable(pool.name(), pool.name().size()) == pool.name();
    if (!valid || !names.insert(pool.name()).second)
      return InvalidArgument("\"{}\" is no name of a pool, or that of two", Printable(pool.name()));
  }
  return OkStatus();
}

// A pool has no resources: they are in the zones of the NUMA nodes.
Json PoolObject(const TopologyPool& pool, const std::vector<CpuSet>& cpus_of_zones) {
  const CpuSet cpus = CheckedSet(pool.cpus());
  Json attributes = Json::array();
  AddCpus(cpus, CheckedSet(pool.exclusive()), attributes);
  Json zone = {
      {"name", PoolZoneName(pool)}, {"type", "pool"}, {"attributes", std::move(attributes)}};
  int parents = 0;
  for (size_t index = 0; index < cpus_of_zones.size(); ++index) {
    if (!cpus.Intersects(cpus_of_zones[index])) continue;
    zone["parent"] = ZoneName(static_cast<int>(index));
    ++parents;
  }
  if (parents > 1) zone.erase("parent");
  return zone;
}

Json TopologyAttributes(const ShowTopologyRequest& view) {
  Json attributes = Json::array();
  attributes.push_back(TopologyAttribute("topologyManagerPolicy",
                                         view.refuses() ? "single-numa-node" : "best-effort"));
  // With the scope "container" the plugin assumes a NUMA node for each container, which may differ
  // from the policy's choice (ADR 17).
  attributes.push_back(
      TopologyAttribute("topologyManagerScope", view.refuses() ? "pod" : "container"));
  attributes.push_back(
      TopologyAttribute("topologyManagerMaxNUMANodes",
                        fmt::format("{}", std::max(kLeastMaxNodes, view.zones().size()))));
  attributes.push_back(
      TopologyAttribute("nodeTopologyPodsFingerprint", PodFingerprint(PodsOf(view))));
  attributes.push_back(
      TopologyAttribute("nodeTopologyPodsFingerprintMethod", "with-exclusive-resources"));
  return attributes;
}

}  // namespace

TopologyWriter::TopologyWriter(HttpTransport& transport, Clock& timers, std::string node,
                               const Options& options, uint64_t seed, EventSeries::WallClock now)
    : node_(std::move(node)),
      options_(options),
      timers_(timers),
      jitter_(seed),
      pauses_(options.first_pause, options.pause),
      delivery_(transport, timers, "writing the NodeResourceTopology", options.backoff, seed + 1,
                kAllTries),
      conflicts_(transport, timers, node_, "TopologyConflict", options.backoff, seed + 2,
                 std::move(now)) {}

Status TopologyWriter::Show(std::optional<ShowTopologyRequest> view) {
  if (view) RESMGR_RETURN_IF_ERROR(CheckTopology(*view));
  shown_ = true;
  view_ = std::move(view);
  Plan();
  return OkStatus();
}

void TopologyWriter::NodeSeen(const Json& node) {
  const std::string uid = TextAt(node, {"metadata", "uid"});
  if (uid.empty() || uid == uid_) return;
  // If the node was made anew, its object was deleted with the former node.
  uid_ = uid;
  known_ = Known::kNothing;
  Plan();
}

std::string TopologyWriter::Body() const {
  return JsonText(TopologyObject(node_, uid_, *view_));
}

bool TopologyWriter::UpToDate() const {
  if (delivery_.under_way())
    return sent_.has_value() == view_.has_value() &&
           (!view_ || MessageDifferencer::Equals(*sent_, *view_));
  if (!view_) return known_ == Known::kAbsent;
  return known_ == Known::kWritten && body_ == Body();
}

bool TopologyWriter::IsUrgent() const {
  return view_ && sent_ &&
         (PodsOf(*sent_) != PodsOf(*view_) || AvailableCpus(*sent_) != AvailableCpus(*view_));
}

void TopologyWriter::Plan() {
  if (!shown_ || uid_.empty() || paused_) return;
  if (UpToDate()) {
    timer_.reset();
    return;
  }
  const auto now = timers_.Steady();
  auto due = now + jitter_.UpTo(IsUrgent() ? options_.soon : options_.spread);
  if (last_write_) due = std::max(due, *last_write_ + options_.gap);
  // A planned write sends the view that is current by then, so a later change does not delay it.
  if (timer_ && due_ <= due) return;
  due_ = due;
  timer_ =
      timers_.After(std::chrono::ceil<std::chrono::milliseconds>(due - now), [this] { Write(); });
}

void TopologyWriter::Write() {
  timer_.reset();
  refresh_.reset();
  last_write_ = timers_.Steady();
  sent_ = view_;
  if (!view_) return LookForOwn();
  std::string body = Body();
  HttpRequest request{.method = "PATCH",
                      .target = fmt::format("{}?fieldManager={}", TopologyPath(node_), kAgentName),
                      .content_type = "application/apply-patch+yaml",
                      .accept = MetadataOnly("PartialObjectMetadata"),
                      .body = body};
  delivery_.Replace(
      std::move(request),
      [this, body = std::move(body)](const StatusOr<HttpReply>& reply) {
        Written(body, StatusOfReply(reply));
      },
      Delivery::Refusal::kEnd);
}

void TopologyWriter::Written(const std::string& body, const Status& status) {
  if (status.ok()) {
    known_ = Known::kWritten;
    body_ = body;
    if (std::exchange(told_, std::nullopt))
      GetLogger("status").Info("NodeResourceTopology writes succeed again");
    pauses_.Reset();
    refresh_ = timers_.After(jitter_.AtLeast(options_.refresh), [this] {
      known_ = Known::kNothing;
      Plan();
    });
    return Plan();
  }
  known_ = Known::kNothing;
  if (status.code() == StatusCode::kAborted && !IsOfAnotherWriter(status)) return Plan();
  Pause(status);
}

void TopologyWriter::LookForOwn() {
  delivery_.Replace(
      {.target = TopologyPath(node_)}, [this](const StatusOr<HttpReply>& reply) { Found(reply); },
      Delivery::Refusal::kEnd);
}

// Removes the object that was found if it is the agent's own and has not changed meanwhile.
void TopologyWriter::Found(const StatusOr<HttpReply>& reply) {
  const Status status = StatusOfReply(reply);
  if (status.code() == StatusCode::kNotFound) return Removed(status);
  if (!status.ok()) return Pause(status);
  const Json object = ParseJson(reply->body).value_or(Json());
  if (!IsOwn(object)) {
    known_ = Known::kAbsent;
    return Plan();
  }
  delivery_.Send(
      Deletion(TopologyPath(node_),
               {{"uid", TextAt(object, {"metadata", "uid"})},
                {"resourceVersion", TextAt(object, {"metadata", "resourceVersion"})}}),
      [this](const StatusOr<HttpReply>& gone) { Removed(StatusOfReply(gone)); },
      Delivery::Refusal::kEnd);
}

void TopologyWriter::Removed(const Status& status) {
  if (status.ok() || status.code() == StatusCode::kNotFound) {
    known_ = Known::kAbsent;
    pauses_.Reset();
    return Plan();
  }
  known_ = Known::kNothing;
  // The object has changed meanwhile: look at it again.
  if (status.code() == StatusCode::kAborted) return Plan();
  Pause(status);
}

void TopologyWriter::Pause(const Status& why) {
  const bool missing = why.code() == StatusCode::kNotFound;
  if (std::exchange(told_, why.code()) != why.code()) {
    GetLogger("status").Warn(
        "the NodeResourceTopology of this node is not written: {}{}", Printable(Message(why), 512),
        missing ? "; the cluster has no CustomResourceDefinition for it: install it, or set "
                  "nrt.Publish to false"
                : "");
    if (IsOfAnotherWriter(why)) {
      conflicts_.Add(fmt::format("another program writes the NodeResourceTopology of this node: "
                                 "switch one of them off, and delete the object: {}",
                                 Printable(Message(why), 512)),
                     1);
    }
  }
  paused_ = true;
  const bool lasting = missing || IsOfAnotherWriter(why);
  timer_ = timers_.After(jitter_.AtLeast(lasting ? options_.pause : pauses_.Next()), [this] {
    paused_ = false;
    timer_.reset();
    UpToDate() ? Plan() : Write();
  });
}

std::string TopologyPath(std::string_view node) {
  return fmt::format("/apis/{}/noderesourcetopologies/{}", kTopologyGroup, PercentEncoded(node));
}

Status CheckTopology(const ShowTopologyRequest& view) {
  if (view.zones().size() > kMostViewZones)
    return InvalidArgument("{} zones: {} are the limit", view.zones().size(), kMostViewZones);
  for (const TopologyZone& zone : view.zones())
    RESMGR_RETURN_IF_ERROR(CheckZone(zone, view.zones().size()));
  RESMGR_RETURN_IF_ERROR(CheckPools(view));
  if (view.pods().size() > kMostTopologyPods)
    return InvalidArgument("{} pods: {} are the limit", view.pods().size(), kMostTopologyPods);
  for (const PodName& pod : PodsOf(view)) {
    if (!IsSubdomain(pod.namespace_name) || !IsSubdomain(pod.name)) {
      return InvalidArgument("\"{}/{}\" is not the name of a pod",
                             Printable(pod.namespace_name, 64), Printable(pod.name, 64));
    }
  }
  return OkStatus();
}

Json TopologyObject(std::string_view node, std::string_view uid, const ShowTopologyRequest& view) {
  Json zones = Json::array();
  std::vector<CpuSet> cpus_of_zones;
  for (int zone = 0; zone < view.zones_size(); ++zone) {
    zones.push_back(ZoneObject(view.zones(zone), zone));
    cpus_of_zones.push_back(CheckedSet(view.zones(zone).cpus()));
  }
  for (const TopologyPool& pool : view.pools())
    zones.push_back(PoolObject(pool, cpus_of_zones));
  Json owners = Json::array();
  owners.push_back({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", uid}});
  Json policies = Json::array();
  policies.push_back(view.refuses() ? "SingleNUMANodePodLevel" : "BestEffortContainerLevel");
  return {{"apiVersion", kTopologyGroup},
          {"kind", "NodeResourceTopology"},
          {"metadata", {{"name", node}, {"ownerReferences", std::move(owners)}}},
          {"topologyPolicies", std::move(policies)},
          {"attributes", TopologyAttributes(view)},
          {"zones", std::move(zones)}};
}

}  // namespace resmgr::agent
