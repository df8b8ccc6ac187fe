// SPDX-License-Identifier: Apache-2.0
#include "webhook/pod_patch.h"

#include <optional>
#include <string_view>

#include "pkg/base/json.h"
#include "pkg/model/resources_annotation.h"
#include "webhook/json_fields.h"
#include "webhook/pod_resources.h"

namespace resmgr::webhook {

namespace {

using nlohmann::json;

// Keys and values of all annotations of an object together (TotalAnnotationSizeLimitB in
// k8s.io/apimachinery).
constexpr size_t kMaxAnnotations = size_t{256} * 1024;
// Marks the API server's copy of a pod that a kubelet runs from a file.
constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";
constexpr std::string_view kAnnotationsPath = "/metadata/annotations";
// The path in a JSON pointer, where "~1" stands for the "/" of "intel.com/resources".
constexpr std::string_view kResourcesPath = "/metadata/annotations/intel.com~1resources";

// Whether the annotation has this value, whatever the order of its members.
bool Says(const json* annotations, const std::string& value) {
  if (annotations == nullptr) return false;
  const auto found = annotations->find(kResourcesAnnotation);
  if (found == annotations->end() || !found->is_string()) return false;
  const auto& text = found->get_ref<const std::string&>();
  if (text == value) return true;
  if (text.size() > kMaxAnnotations) return false;
  const std::optional<json> parsed = ParseJson(text);
  return parsed && parsed == ParseJson(value);
}

size_t SizeOfOthers(const json* annotations) {
  size_t size = 0;
  if (annotations == nullptr) return size;
  for (const auto& [key, value] : annotations->items()) {
    if (key == kResourcesAnnotation) continue;
    size += key.size() + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
  }
  return size;
}

json AddOperation(std::string_view path, json value) {
  return {{"op", "add"}, {"path", path}, {"value", std::move(value)}};
}

// The annotation's value, or the reason why it cannot have one.
StatusOr<std::string> ValueFor(const json* annotations, const json& stored) {
  RESMGR_ASSIGN_OR_RETURN(std::string value, ResourcesOfPod(stored));
  const size_t size = SizeOfOthers(annotations) + kResourcesAnnotation.size() + value.size();
  if (size > kMaxAnnotations) {
    return InvalidArgument("with {} the annotations would have {} bytes, more than {}",
                           kResourcesAnnotation, size, kMaxAnnotations);
  }
  return value;
}

}  // namespace

StatusOr<PodPatch> PatchOfPod(const json& pod, const json& stored) {
  RESMGR_ASSIGN_OR_RETURN(const json* metadata, ObjectAt(pod, "metadata"));
  if (metadata == nullptr) return InvalidArgument("the pod has no metadata");
  RESMGR_ASSIGN_OR_RETURN(const json* annotations, ObjectAt(*metadata, "annotations"));
  if (annotations != nullptr && annotations->contains(kMirrorAnnotation)) return PodPatch{};

  json patch = json::array();
  const auto value = ValueFor(annotations, stored);
  if (!value.ok()) {
    PodPatch removal{.warning = std::string(Message(value.status()))};
    if (annotations != nullptr && annotations->contains(kResourcesAnnotation)) {
      patch.push_back({{"op", "remove"}, {"path", kResourcesPath}});
      removal.patch = JsonText(patch);
    }
    return removal;
  }
  if (Says(annotations, *value)) return PodPatch{};
  if (annotations == nullptr) patch.push_back(AddOperation(kAnnotationsPath, json::object()));
  // "add" also replaces.
  patch.push_back(AddOperation(kResourcesPath, *value));
  return PodPatch{.patch = JsonText(patch)};
}

}  // namespace resmgr::webhook
