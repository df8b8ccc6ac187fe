// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cri/id_owners.h"
#include "pkg/cri/image_ids.h"
#include "pkg/cri/method_table.h"
#include "pkg/cri/reply_merge.h"

namespace resmgr {

// How the runtime of a call is found if there are several: the role of fields in messages of
// runtime.v1 and runtime.v1alpha2. Field names are those of the CRI.
struct CallRoute {
  enum class By {
    kDefault,  // the first runtime: Version, and unknown methods
    kHandler,  // RunPodSandboxRequest.runtime_handler, and RestorePod's
    kId,       // the owner of the id in field 1 of the request
    // PullImage: ImageSpec.runtime_handler, else the owner of the pod's uid in
    // PullImageRequest.sandbox_config, else the first runtime.
    kImagePull,
    kAll,   // all runtimes, unless the request names a handler, or an id in its filter
    kEach,  // as kAll, but the reply is a stream of messages
  };
  By by = By::kDefault;
  // kHandler: the field's number.
  uint32_t handler = 0;
  // kId: the kind of the id.
  IdOwners::Kind id_kind = IdOwners::Kind::kContainer;
  // kAll and kEach: fields of ids in the request's `filter`; 0: there is none.
  uint32_t filter_container_id = 0;
  uint32_t filter_pod_sandbox_id = 0;
  // kAll and kEach: the place of an ImageSpec that may name a handler, in the request's field 1.
  enum class Image { kNone, kItself, kInFilter };
  Image image = Image::kNone;
  // The place of images' ids in replies.
  ImageIds::In image_ids = ImageIds::In::kNone;
  // Whether runtimes that need the image are left out (image_needs.h).
  bool spares_needed = false;
  // The meaning of ids in an OK reply: a new id (in field 1), the removal of the request's id, or
  // all ids of the runtime (kList). For a stream, each message has some of the runtime's ids
  // (kPart) or an event of a container (kEvent).
  enum class Tells { kNothing, kNewPodSandbox, kNewContainer, kRemoved, kList, kPart, kEvent };
  Tells tells = Tells::kNothing;
  // kAll: merges the replies, also if some runtimes have failed. nullptr: the replies are
  // concatenated, and if a runtime fails the call fails with its error.
  MergeReplies merge = nullptr;
  // kAll: the call changes the runtimes. It waits as long as its client for each that does not
  // hang, since a runtime may need long, and would be asked again after it was cancelled.
  bool changes = false;
};

CallRoute RouteOf(const Method& method);

// The parts of a request that decide its runtime; views into it. kInvalidArgument: malformed
// protobuf.
struct RouteKeys {
  std::string_view handler;
  std::string_view id;              // for kImagePull: the pod's uid
  std::string_view pod_uid;         // uid of a new pod sandbox
  std::string_view image;           // ImageSpec.image, in requests about one
  std::string_view container_id;    // in the filter
  std::string_view pod_sandbox_id;  // in the filter
  bool filtered = false;            // the request has a filter, by an id or otherwise
};
StatusOr<RouteKeys> ReadRouteKeys(const CallRoute& route, std::string_view request);

// The ids in the reply of ListPodSandbox or ListContainers: field 1 of each entry in field 1.
StatusOr<std::vector<std::string_view>> ReadListedIds(std::string_view reply);

}  // namespace resmgr
