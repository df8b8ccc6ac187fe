// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/kube_objects.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/simulator/yaml_access.h"

namespace resmgr {
namespace {

using Kind = ConfigNode::Kind;

// More kinds than Kubernetes has; kinds beyond that are counted as one.
constexpr size_t kNamedKinds = 100;

std::string KindOf(const ConfigNode& object) {
  for (const ConfigNode::Entry& entry : object.entries) {
    if (entry.key == "kind") return entry.value.text;
  }
  return "";
}

// FNV-1a over all that the template says, so that the same template gives the same names.
void Hash(const ConfigNode& node, uint32_t& hash) {
  const auto add = [&hash](std::string_view text) {
    for (const char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    hash = (hash ^ 0xff) * 16777619U;
  };
  add(node.text);
  for (const ConfigNode& item : node.items)
    Hash(item, hash);
  for (const ConfigNode::Entry& entry : node.entries) {
    add(entry.key);
    Hash(entry.value, hash);
  }
}

// In the letters of which Kubernetes makes its suffixes: they form no words.
std::string SafeText(uint32_t number) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string text;
  for (const char digit : fmt::format("{}", number))
    text += kLetters[static_cast<size_t>(digit) % kLetters.size()];
  return text;
}

// The pod that the template describes, in the namespace of its owner.
ConfigNode PodDocument(const ConfigNode& object, const ConfigNode& pod_template,
                       const std::string& name_space, const std::string& name) {
  ConfigNode document = pod_template;
  const auto scalar = [&object](std::string_view key, const std::string& text) {
    ConfigNode node;
    node.kind = Kind::kScalar;
    node.text = text;
    node.line = object.line;
    node.source = object.source;
    return ConfigNode::Entry{.key = std::string(key), .line = object.line, .value = node};
  };
  auto metadata = std::ranges::find(document.entries, "metadata", &ConfigNode::Entry::key);
  if (metadata == document.entries.end()) {
    document.entries.push_back(scalar("metadata", ""));
    metadata = document.entries.end() - 1;
  }
  ConfigNode& values = metadata->value;
  values.kind = Kind::kMap;
  std::erase_if(values.entries, [](const ConfigNode::Entry& entry) {
    return entry.key == "name" || entry.key == "namespace";
  });
  values.entries.push_back(scalar("name", name));
  if (!name_space.empty()) values.entries.push_back(scalar("namespace", name_space));
  return document;
}

StatusOr<size_t> NumberAt(const ConfigNode* map, std::string_view key, std::string_view path,
                          size_t otherwise) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const node, FindKey(map, key, Kind::kScalar, path));
  if (node == nullptr) return otherwise;
  const auto number = ParseUint(node->text);
  if (number && *number <= kMaxPods) return static_cast<size_t>(*number);
  return ErrorAt(*node, fmt::format("{}{}", path, key),
                 fmt::format("must be a number up to {}", kMaxPods));
}

}  // namespace

bool IsKubeObject(const ConfigNode& document) {
  return document.kind == Kind::kMap &&
         std::ranges::any_of(document.entries, [](const auto& each) { return each.key == "kind"; });
}

Status KubeObjects::Read(const ConfigNode& object) {
  return ReadKind(object, KindOf(object));
}

Status KubeObjects::ReadKind(const ConfigNode& object, std::string_view kind) {
  if (kind == "Pod") {
    RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const status,
                            FindKey(&object, "status", Kind::kMap, ""));
    RESMGR_ASSIGN_OR_RETURN(const std::string phase, FindText(status, "phase", "status."));
    if (phase == "Succeeded" || phase == "Failed") {
      ++ended_;
      return OkStatus();
    }
    RESMGR_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(object));
    return Add({.where = Where(object), .manifest = std::move(manifest)});
  }
  if (kind == "Deployment" || kind == "StatefulSet") return ReadReplicas(object, kind);
  if (kind.ends_with("List")) return ReadItems(object, kind);
  const std::string name =
      skipped_.size() < kNamedKinds ? Printable(kind.empty() ? "(none)" : kind, 64) : "(others)";
  ++skipped_[name];
  return OkStatus();
}

// Items of a PodList need not say that they are pods.
Status KubeObjects::ReadItems(const ConfigNode& list, std::string_view kind) {
  const std::string_view of_items = kind.substr(0, kind.size() - std::string_view("List").size());
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const items, FindKey(&list, "items", Kind::kList, ""));
  if (items == nullptr) return OkStatus();
  for (const ConfigNode& item : items->items) {
    if (item.kind != Kind::kMap) return ErrorAt(item, "items", "must be objects");
    const std::string own = KindOf(item);
    RESMGR_RETURN_IF_ERROR(ReadKind(item, own.empty() ? of_items : own));
  }
  return OkStatus();
}

Status KubeObjects::ReadReplicas(const ConfigNode& object, std::string_view kind) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const metadata,
                          FindKey(&object, "metadata", Kind::kMap, ""));
  RESMGR_ASSIGN_OR_RETURN(std::string name, FindText(metadata, "name", "metadata."));
  if (name.empty()) return ErrorAt(object, "metadata.name", fmt::format("a {} needs a name", kind));
  RESMGR_ASSIGN_OR_RETURN(const std::string name_space,
                          FindText(metadata, "namespace", "metadata."));
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const spec, FindKey(&object, "spec", Kind::kMap, ""));
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const pod_template,
                          FindKey(spec, "template", Kind::kMap, "spec."));
  if (pod_template == nullptr) return ErrorAt(object, "spec.template", "is missing");
  RESMGR_ASSIGN_OR_RETURN(const size_t replicas, NumberAt(spec, "replicas", "spec.", 1));
  size_t first = 0;
  if (kind == "StatefulSet") {
    RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const ordinals,
                            FindKey(spec, "ordinals", Kind::kMap, "spec."));
    RESMGR_ASSIGN_OR_RETURN(first, NumberAt(ordinals, "start", "spec.ordinals.", 0));
  } else {
    uint32_t hash = 2166136261U;
    Hash(*pod_template, hash);
    name += '-' + SafeText(hash);
  }
  RESMGR_ASSIGN_OR_RETURN(Manifest manifest,
                          ReadManifest(PodDocument(object, *pod_template, name_space, name)));
  for (size_t i = 0; i < replicas; ++i) {
    PodOfObject pod{.where = Where(object), .manifest = manifest};
    pod.manifest.name = fmt::format("{}-{}", name, first + i);
    RESMGR_RETURN_IF_ERROR(Add(std::move(pod)));
  }
  return OkStatus();
}

Status KubeObjects::Add(PodOfObject pod) {
  if (++count_ > kMaxPods) {
    return InvalidArgument("{}: more than {} pods", pod.where, kMaxPods);
  }
  pods_.push_back(std::move(pod));
  return OkStatus();
}

std::vector<PodOfObject> KubeObjects::TakePods() {
  return std::exchange(pods_, {});
}

std::vector<std::string> KubeObjects::Notes() const {
  std::vector<std::string> notes;
  for (const auto& [kind, count] : skipped_)
    notes.push_back(fmt::format("skipped {} of kind {}, which places no pods here", count, kind));
  if (ended_ > 0) notes.push_back(fmt::format("skipped {} pods that have ended", ended_));
  return notes;
}

}  // namespace resmgr
