// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/docker/docker_node.h"
#include "test/e2e/docker/docker_pods.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {

// Pods as dockershim and cri-dockerd make them, through cri-resmgr in front of a real dockerd.
class DockerPodsTest : public ::testing::Test {
 protected:
  void Open(const DockerNode::Options& options) {
    node_ = Must(DockerNode::Start(options));
    pods_ = std::make_unique<DockerPods>(node_->socket(), node_->dockerd().CgroupParent());
  }
  void TearDown() override {
    if (!HasFailure() || node_ == nullptr) return;
    GTEST_LOG_(INFO) << node_->daemon().Log() << "\n" << node_->dockerd().Log();
  }

  DockerPod Run(DockerPod pod) {
    EXPECT_THAT(pods_->Run(pod), IsOk()) << pod.name;
    return pod;
  }

  std::unique_ptr<DockerNode> node_;
  std::unique_ptr<DockerPods> pods_;
};

}  // namespace resmgr::test
