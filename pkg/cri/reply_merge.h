// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

class Backends;

// What one of several runtimes answered to a unary call that all of them got. The code of the
// status is that of the runtime; Unavailable: it is away.
struct RuntimeReply {
  Status status{};
  std::string message{};  // of an OK one
};

// One reply of several, which are as many as the back ends and in their order. The messages are
// those of runtime.v1; runtime.v1alpha2 has the same field numbers. A status that is not OK is the
// client's: it names the runtime that it is about. Internal: a message that is no protobuf.
using MergeReplies = StatusOr<std::string> (*)(const Backends& backends,
                                               const std::vector<RuntimeReply>& replies);

// StatusResponse. A condition (RuntimeReady, NetworkReady, others) holds where it does at all
// runtimes; RuntimeReady does not while one of them is away. A runtime handler is told as the
// runtime tells it that gets the pod sandboxes of it. A feature of the node is one that all
// runtimes have. Keys of `info` are those of the default runtime; others get "<name>." before them.
// An error only where no runtime has answered: the first one's.
StatusOr<std::string> MergeStatus(const Backends& backends,
                                  const std::vector<RuntimeReply>& replies);

// RuntimeConfigResponse: the kubelet has one cgroup driver, so it has to be that of all runtimes;
// else FailedPrecondition names two that differ. Runtimes older than the method have no say, and
// neither have those that are away: a kubelet that is told of no driver does not start.
StatusOr<std::string> MergeRuntimeConfig(const Backends& backends,
                                         const std::vector<RuntimeReply>& replies);

// A reply without fields (UpdateRuntimeConfig): every runtime has got the request, and the first
// that failed is told. One that lacks the method has nothing to update.
StatusOr<std::string> MergeEmpty(const Backends& backends,
                                 const std::vector<RuntimeReply>& replies);

// ListMetricDescriptorsResponse: one descriptor for each name, the first one. Runtimes that lack
// the method have no metrics; any other failure is that of the call.
StatusOr<std::string> MergeMetricDescriptors(const Backends& backends,
                                             const std::vector<RuntimeReply>& replies);

// ListImagesResponse: all images, each id once, in whichever form runtimes write it (image_ids.h);
// pinned where one runtime pins it. Runtimes that lack the method have none; any other failure is
// that of the call.
StatusOr<std::string> MergeImages(const Backends& backends,
                                  const std::vector<RuntimeReply>& replies);

// ImageStatusResponse to a request that does not say for which runtime: the first reply that lacks
// the image, since the kubelet pulls one that is missing and creates the container of one that is
// there. Runtimes that are away, lack the method, or have no pod sandbox create no container, and
// need not have the image; any other failure is that of the call.
StatusOr<std::string> MergeImageStatus(const Backends& backends,
                                       const std::vector<RuntimeReply>& replies);

// ImageFsInfoResponse: the file systems of all that answer, the default runtime's first. Its
// failure is that of the call: the kubelet would take the next one's file system for that of
// the node's images.
StatusOr<std::string> MergeImageFsInfo(const Backends& backends,
                                       const std::vector<RuntimeReply>& replies);

}  // namespace resmgr
