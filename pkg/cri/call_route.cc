// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/call_route.h"

#include <algorithm>
#include <array>
#include <span>

#include "pkg/base/wire.h"
#include "pkg/cri/edit_fields.h"

namespace resmgr {

namespace {

using By = CallRoute::By;
using Ids = ImageIds::In;
using Kind = IdOwners::Kind;
using Tells = CallRoute::Tells;

struct NamedRoute {
  std::string_view method;
  CallRoute route;
};

constexpr CallRoute OfPod(Tells tells = Tells::kNothing, Ids image_ids = Ids::kNone) {
  return {.by = By::kId, .id_kind = Kind::kPodSandbox, .image_ids = image_ids, .tells = tells};
}
constexpr CallRoute OfContainer(Tells tells = Tells::kNothing, Ids image_ids = Ids::kNone) {
  return {.by = By::kId, .id_kind = Kind::kContainer, .image_ids = image_ids, .tells = tells};
}

// The methods of the RuntimeService. Filters: PodSandboxFilter.id = 1, PodSandboxStatsFilter.id =
// 1, ContainerFilter.id = 1 and .pod_sandbox_id = 3, ContainerStatsFilter.id = 1 and
// .pod_sandbox_id = 2.
constexpr std::array kRoutes = {
    NamedRoute{"RunPodSandbox", {.by = By::kHandler, .handler = 2, .tells = Tells::kNewPodSandbox}},
    // Methods of CRI 1.37, which the .proto file lacks: RestorePodRequest.runtime_handler = 3, and
    // CheckpointPod has the pod sandbox's id in field 1.
    NamedRoute{"RestorePod", {.by = By::kHandler, .handler = 3}},
    NamedRoute{"CheckpointPod", OfPod()},
    NamedRoute{"StopPodSandbox", OfPod()},
    NamedRoute{"RemovePodSandbox", OfPod(Tells::kRemoved)},
    NamedRoute{"PodSandboxStatus", OfPod(Tells::kNothing, Ids::kPodStatus)},
    NamedRoute{"PodSandboxStats", OfPod()},
    NamedRoute{"PortForward", OfPod()},
    NamedRoute{"UpdatePodSandboxResources", OfPod()},
    // The request has the pod sandbox's id, the reply the container's.
    NamedRoute{"CreateContainer", OfPod(Tells::kNewContainer)},
    NamedRoute{"StartContainer", OfContainer()},
    NamedRoute{"StopContainer", OfContainer()},
    NamedRoute{"RemoveContainer", OfContainer(Tells::kRemoved)},
    NamedRoute{"ContainerStatus", OfContainer(Tells::kNothing, Ids::kStatus)},
    NamedRoute{"ContainerStats", OfContainer()},
    NamedRoute{"UpdateContainerResources", OfContainer()},
    NamedRoute{"ReopenContainerLog", OfContainer()},
    NamedRoute{"ExecSync", OfContainer()},
    NamedRoute{"Exec", OfContainer()},
    NamedRoute{"Attach", OfContainer()},
    NamedRoute{"CheckpointContainer", OfContainer()},
    NamedRoute{"ListPodSandbox",
               {.by = By::kAll,
                .id_kind = Kind::kPodSandbox,
                .filter_pod_sandbox_id = 1,
                .tells = Tells::kList}},
    NamedRoute{"ListContainers",
               {.by = By::kAll,
                .id_kind = Kind::kContainer,
                .filter_container_id = 1,
                .filter_pod_sandbox_id = 3,
                .image_ids = Ids::kContainers,
                .tells = Tells::kList}},
    NamedRoute{"ListContainerStats",
               {.by = By::kAll, .filter_container_id = 1, .filter_pod_sandbox_id = 2}},
    NamedRoute{"ListPodSandboxStats", {.by = By::kAll, .filter_pod_sandbox_id = 1}},
    NamedRoute{"ListMetricDescriptors", {.by = By::kAll, .merge = MergeMetrics}},
    NamedRoute{"ListPodSandboxMetrics", {.by = By::kAll, .merge = MergeMetrics}},
    NamedRoute{"Status", {.by = By::kAll, .merge = MergeStatus}},
    NamedRoute{"RuntimeConfig", {.by = By::kAll, .merge = MergeRuntimeConfig}},
    NamedRoute{"UpdateRuntimeConfig", {.by = By::kAll, .merge = MergeEmpty, .changes = true}},
    NamedRoute{"StreamPodSandboxes",
               {.by = By::kEach,
                .id_kind = Kind::kPodSandbox,
                .filter_pod_sandbox_id = 1,
                .tells = Tells::kPart}},
    NamedRoute{"StreamContainers",
               {.by = By::kEach,
                .filter_container_id = 1,
                .filter_pod_sandbox_id = 3,
                .image_ids = Ids::kContainers,
                .tells = Tells::kPart}},
    NamedRoute{"StreamContainerStats",
               {.by = By::kEach, .filter_container_id = 1, .filter_pod_sandbox_id = 2}},
    NamedRoute{"StreamPodSandboxStats", {.by = By::kEach, .filter_pod_sandbox_id = 1}},
    NamedRoute{"StreamPodSandboxMetrics", {.by = By::kEach}},
    NamedRoute{"GetContainerEvents",
               {.by = By::kEach, .image_ids = Ids::kEvent, .tells = Tells::kEvent}},
};

// The methods of the ImageService. StreamImages repeats an image that several runtimes have:
// removing duplicates would require keeping all ids.
constexpr std::array kImageRoutes = {
    NamedRoute{"PullImage",
               {.by = By::kImagePull, .id_kind = Kind::kPodUid, .image_ids = Ids::kPull}},
    NamedRoute{"ImageStatus",
               {.by = By::kAll,
                .image = CallRoute::Image::kItself,
                .image_ids = Ids::kImages,
                .merge = MergeImageStatus}},
    NamedRoute{"RemoveImage",
               {.by = By::kAll,
                .image = CallRoute::Image::kItself,
                .spares_needed = true,
                .merge = MergeEmpty,
                .changes = true}},
    NamedRoute{"ListImages",
               {.by = By::kAll,
                .image = CallRoute::Image::kInFilter,
                .image_ids = Ids::kImages,
                .merge = MergeImages}},
    NamedRoute{"StreamImages",
               {.by = By::kEach, .image = CallRoute::Image::kInFilter, .image_ids = Ids::kImages}},
    NamedRoute{"ImageFsInfo", {.by = By::kAll, .merge = MergeImageFsInfo}},
};

constexpr uint32_t kId = 1;              // in requests about one object, and in entries of lists
constexpr uint32_t kFilter = 1;          // in list requests
constexpr uint32_t kEntries = 1;         // in list replies
constexpr uint32_t kImageField = 1;      // in requests about an image, and in an ImageFilter
constexpr uint32_t kImageName = 1;       // ImageSpec.image
constexpr uint32_t kImageHandler = 19;   // ImageSpec.runtime_handler
constexpr uint32_t kPodConfig = 1;       // RunPodSandboxRequest.config
constexpr uint32_t kPullPodConfig = 3;   // PullImageRequest.sandbox_config
constexpr uint32_t kConfigMetadata = 1;  // in PodSandboxConfig
constexpr uint32_t kUid = 2;             // in PodSandboxMetadata

// Paths of fields.
constexpr std::array kHandlerOfImage = {kImageHandler};
constexpr std::array kNameOfImage = {kImageName};
constexpr std::array kHandlerOfFilter = {kImageField, kImageHandler};
constexpr std::array kUidOfConfig = {kConfigMetadata, kUid};

Status NoProtobuf() {
  return InvalidArgument("the request is malformed protobuf, so its runtime is unknown");
}

// Reads the string at this path of fields, the last one if a field is repeated; empty if it is
// absent.
Status ReadText(std::string_view message, std::span<const uint32_t> path, std::string_view& text) {
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.field() != path.front() || !reader.is_bytes()) continue;
    if (path.size() == 1) {
      text = reader.bytes();
    } else {
      RESMGR_RETURN_IF_ERROR(ReadText(reader.bytes(), path.subspan(1), text));
    }
  }
  return reader.failed() ? NoProtobuf() : OkStatus();
}

// Reads a filter; several occurrences merge.
Status ReadFilter(const CallRoute& route, std::string_view filter, RouteKeys& keys) {
  WireReader reader(filter);
  while (reader.Next()) {
    keys.filtered = true;
    if (!reader.is_bytes()) continue;
    if (reader.field() == route.filter_container_id) keys.container_id = reader.bytes();
    if (reader.field() == route.filter_pod_sandbox_id) keys.pod_sandbox_id = reader.bytes();
  }
  return reader.failed() ? NoProtobuf() : OkStatus();
}

}  // namespace

CallRoute RouteOf(const Method& method) {
  const auto find = [&method](const auto& routes) {
    const auto* const it = std::ranges::find(routes, method.name, &NamedRoute::method);
    return it == routes.end() ? CallRoute() : it->route;
  };
  switch (method.service) {
    case Service::kRuntime:
      return find(kRoutes);
    case Service::kImage:
      return find(kImageRoutes);
    case Service::kOther:
      break;
  }
  return {};
}

StatusOr<RouteKeys> ReadRouteKeys(const CallRoute& route, std::string_view request) {
  RouteKeys keys;
  WireReader reader(request);
  while (reader.Next()) {
    if (!reader.is_bytes()) continue;
    switch (route.by) {
      case By::kDefault:
        break;
      case By::kHandler:
        if (reader.field() == route.handler) keys.handler = reader.bytes();
        if (reader.field() != kPodConfig || route.tells != Tells::kNewPodSandbox) break;
        RESMGR_RETURN_IF_ERROR(ReadText(reader.bytes(), kUidOfConfig, keys.pod_uid));
        break;
      case By::kImagePull:
        if (reader.field() == kImageField) {
          RESMGR_RETURN_IF_ERROR(ReadText(reader.bytes(), kHandlerOfImage, keys.handler));
        } else if (reader.field() == kPullPodConfig) {
          RESMGR_RETURN_IF_ERROR(ReadText(reader.bytes(), kUidOfConfig, keys.id));
        }
        break;
      case By::kId:
        if (reader.field() == kId) keys.id = reader.bytes();
        break;
      case By::kAll:
      case By::kEach:
        if (reader.field() != kFilter) break;
        if (route.image == CallRoute::Image::kItself) {
          RESMGR_RETURN_IF_ERROR(ReadText(reader.bytes(), kHandlerOfImage, keys.handler));
          RESMGR_RETURN_IF_ERROR(ReadText(reader.bytes(), kNameOfImage, keys.image));
          break;
        }
        if (route.image == CallRoute::Image::kInFilter) {
          RESMGR_RETURN_IF_ERROR(ReadText(reader.bytes(), kHandlerOfFilter, keys.handler));
        }
        RESMGR_RETURN_IF_ERROR(ReadFilter(route, reader.bytes(), keys));
        break;
    }
  }
  if (reader.failed()) return NoProtobuf();
  return keys;
}

StatusOr<std::vector<std::string_view>> ReadListedIds(std::string_view reply) {
  std::vector<std::string_view> ids;
  WireReader reader(reply);
  while (reader.Next()) {
    if (reader.field() != kEntries || !reader.is_bytes()) continue;
    std::string_view id;
    if (!ReadTextField(reader.bytes(), kId, id)) {
      return InvalidArgument("an entry of the list is malformed protobuf");
    }
    ids.push_back(id);
  }
  if (reader.failed()) return InvalidArgument("the list is malformed protobuf");
  return ids;
}

}  // namespace resmgr
