// SPDX-License-Identifier: Apache-2.0
#include "pkg/kubelet/pod_devices.h"

#include <algorithm>
#include <cstdint>

#include "pkg/base/field_writer.h"
#include "pkg/base/wire.h"
#include "pkg/pipeline/locality_hints.h"

namespace resmgr {
namespace {

// Bytes of the longest name that Kubernetes takes for a resource: a domain, "/" and a label.
constexpr size_t kMaxResourceName = 253 + 1 + 63;

bool IsResourceName(std::string_view name) {
  const auto graphic = [](char c) { return c > ' ' && c < '\x7f'; };
  return !name.empty() && name.size() <= kMaxResourceName && std::ranges::all_of(name, graphic);
}

// Reads the answer from the outside in; a message that is not protobuf invalidates the whole
// answer.
class AnswerReader {
 public:
  AnswerReader(const PodContainer& container, const NodeSet& nodes)
      : container_(container), nodes_(nodes) {}

  void ReadAnswer(std::string_view answer) {
    WireReader reader(answer);
    while (reader.Next())
      if (reader.field() == 1) ReadPod(reader.bytes());
    Check(reader);
  }
  bool failed() const { return failed_; }
  std::vector<LocalityHint> TakeHints() { return std::move(hints_); }

 private:
  void ReadPod(std::string_view pod) {
    std::string_view name;
    std::string_view namespace_name;
    WireReader reader(pod);
    while (reader.Next()) {
      if (reader.field() == 1) name = reader.bytes();
      if (reader.field() == 2) namespace_name = reader.bytes();
    }
    Check(reader);
    if (name != container_.pod || namespace_name != container_.namespace_name) return;
    WireReader again(pod);
    while (again.Next())
      if (again.field() == 3) ReadContainer(again.bytes());
  }

  void ReadContainer(std::string_view container) {
    std::string_view name;
    WireReader reader(container);
    while (reader.Next())
      if (reader.field() == 1) name = reader.bytes();
    Check(reader);
    if (name != container_.container) return;
    WireReader again(container);
    while (again.Next())
      if (again.field() == 2) ReadDevices(again.bytes());
  }

  // Kubelets have an entry for each device, and for each node of a device that is near to several.
  void ReadDevices(std::string_view devices) {
    std::string_view resource;
    NodeSet near;
    WireReader reader(devices);
    while (reader.Next()) {
      if (reader.field() == 1) resource = reader.bytes();
      if (reader.field() == 3) ReadTopology(reader.bytes(), near);
    }
    Check(reader);
    if (near.empty() || !IsResourceName(resource)) return;
    const std::string source = "pod-resources podresourceapi:" + std::string(resource);
    const auto known = std::ranges::find(hints_, source, &LocalityHint::source);
    if (known != hints_.end()) {
      known->nodes |= near;
    } else if (hints_.size() < kMaxHints) {
      hints_.push_back({.source = source, .cpus = {}, .nodes = std::move(near)});
    }
  }

  void ReadTopology(std::string_view topology, NodeSet& near) {
    WireReader reader(topology);
    while (reader.Next())
      if (reader.field() == 1 && reader.is_bytes()) ReadNode(reader.bytes(), near);
    Check(reader);
  }

  void ReadNode(std::string_view node, NodeSet& near) {
    uint64_t id = 0;  // protobuf leaves out a 0
    WireReader reader(node);
    while (reader.Next())
      if (reader.field() == 1) id = reader.number();
    Check(reader);
    if (id <= NodeSet::kMaxId && nodes_.Contains(static_cast<int>(id)))
      near.Add(static_cast<int>(id));
  }

  void Check(const WireReader& reader) { failed_ |= reader.failed(); }

  const PodContainer& container_;
  const NodeSet& nodes_;
  std::vector<LocalityHint> hints_;
  bool failed_ = false;
};

}  // namespace

std::string GetPodResourcesRequest(const PodContainer& container) {
  std::string request;
  {
    FieldWriter fields(request);
    fields.Bytes(1, container.pod);
    fields.Bytes(2, container.namespace_name);
  }
  return request;
}

StatusOr<std::vector<LocalityHint>> ReadPodDevices(std::string_view answer,
                                                   const PodContainer& container,
                                                   const NodeSet& nodes) {
  AnswerReader reader(container, nodes);
  reader.ReadAnswer(answer);
  if (reader.failed()) return InvalidArgument("the answer is no message of pod resources");
  return reader.TakeHints();
}

}  // namespace resmgr
