// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

class Backends;

// The answer of one of several runtimes to a unary call that all of them got. The status has the
// runtime's code; kUnavailable: it is away.
struct RuntimeReply {
  Status status{};
  std::string message{};  // of an OK answer
};

// Merges replies, which are as many as the back ends and in their order, into one. The messages are
// those of runtime.v1; runtime.v1alpha2 has the same field numbers. A status that is not OK is for
// the client and names its runtime. kInternal: a malformed message.
using MergeReplies = StatusOr<std::string> (*)(const Backends& backends,
                                               const std::vector<RuntimeReply>& replies);

// Merges StatusResponse. A condition (RuntimeReady, NetworkReady, others) holds if it holds at all
// runtimes; RuntimeReady does not while one of them is away. A handler has the features reported by
// the runtime that gets its pod sandboxes. A feature of the node must be one of all runtimes. Keys
// of `info` are those of the default runtime; others get the prefix "<name>.". An error only if no
// runtime has answered: the first one's.
StatusOr<std::string> MergeStatus(const Backends& backends,
                                  const std::vector<RuntimeReply>& replies);

// Merges RuntimeConfigResponse: the kubelet has one cgroup driver, so all runtimes must have the
// same; else kFailedPrecondition names two that differ. Runtimes that lack the method or are away
// do not count: a kubelet without a driver would not start.
StatusOr<std::string> MergeRuntimeConfig(const Backends& backends,
                                         const std::vector<RuntimeReply>& replies);

// Merges replies without fields (UpdateRuntimeConfig): every runtime has got the request, and the
// first failure is returned. One that lacks the method has nothing to update.
StatusOr<std::string> MergeEmpty(const Backends& backends,
                                 const std::vector<RuntimeReply>& replies);

// Merges ListMetricDescriptorsResponse: one descriptor for each name, the first one. Runtimes that
// lack the method have no metrics; any other failure is that of the call.
StatusOr<std::string> MergeMetricDescriptors(const Backends& backends,
                                             const std::vector<RuntimeReply>& replies);

// Merges ListImagesResponse: all images, each id once, in whichever form runtimes write it
// (image_ids.h); pinned if one runtime pins it. Runtimes that lack the method have none; any other
// failure is that of the call.
StatusOr<std::string> MergeImages(const Backends& backends,
                                  const std::vector<RuntimeReply>& replies);

// Merges ImageStatusResponse for a request without a runtime: the first reply that lacks the image,
// since the kubelet pulls a missing one and creates the container of an existing one. Runtimes that
// are away, lack the method, or have no pod sandbox create no container, and need not have the
// image; any other failure is that of the call.
StatusOr<std::string> MergeImageStatus(const Backends& backends,
                                       const std::vector<RuntimeReply>& replies);

// Merges ImageFsInfoResponse: the file systems of all that answer, the default runtime's first. Its
// failure is that of the call: the kubelet would take the next one's file system for that of the
// node's images.
StatusOr<std::string> MergeImageFsInfo(const Backends& backends,
                                       const std::vector<RuntimeReply>& replies);

}  // namespace resmgr
