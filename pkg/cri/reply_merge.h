// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

class Backends;

// One runtime's answer to a unary call that all runtimes got. The status has the runtime's code;
// kUnavailable: the runtime is away.
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
// runtimes; RuntimeReady does not hold while a runtime is away. A handler has the features reported
// by the runtime that gets its pod sandboxes. The node has a feature if all runtimes have it. Keys
// of `info` are those of the default runtime; those of other runtimes get the prefix "<name>.". If
// no runtime has answered, returns the first one's error.
StatusOr<std::string> MergeStatus(const Backends& backends,
                                  const std::vector<RuntimeReply>& replies);

// Merges RuntimeConfigResponse: the kubelet has one cgroup driver, so if two runtimes have
// different ones, kFailedPrecondition names both. Runtimes that lack the method or are away do not
// count: a kubelet that gets no driver would not start.
StatusOr<std::string> MergeRuntimeConfig(const Backends& backends,
                                         const std::vector<RuntimeReply>& replies);

// Merges replies without fields (UpdateRuntimeConfig): every runtime has got the request, and the
// first failure is returned. A runtime that lacks the method does not count as failed.
StatusOr<std::string> MergeEmpty(const Backends& backends,
                                 const std::vector<RuntimeReply>& replies);

// Merges ListMetricDescriptorsResponse and ListPodSandboxMetricsResponse: keeps the first
// descriptor of each name and the first metrics of each pod sandbox. A runtime that lacks the
// method has no metrics; if a runtime fails otherwise, the call fails.
StatusOr<std::string> MergeMetrics(const Backends& backends,
                                   const std::vector<RuntimeReply>& replies);

// Merges ListImagesResponse: each image once, whichever form of its id runtimes write
// (image_ids.h); pinned if one runtime pins it. A runtime that lacks the method has no images; if a
// runtime fails otherwise, the call fails.
StatusOr<std::string> MergeImages(const Backends& backends,
                                  const std::vector<RuntimeReply>& replies);

// Merges ImageStatusResponse if the request names no runtime. If a runtime that may need the image
// lacks it, returns that reply, so that the kubelet pulls the image before it creates a container.
// Runtimes that are away, lack the method, or have no pod sandboxes need not have the image; if a
// runtime fails otherwise, the call fails.
StatusOr<std::string> MergeImageStatus(const Backends& backends,
                                       const std::vector<RuntimeReply>& replies);

// Merges ImageFsInfoResponse: the file systems of all runtimes that answer, the default runtime's
// first. If the default runtime fails, the call fails: the kubelet would take another runtime's
// file system for that of the node's images.
StatusOr<std::string> MergeImageFsInfo(const Backends& backends,
                                       const std::vector<RuntimeReply>& replies);

}  // namespace resmgr
