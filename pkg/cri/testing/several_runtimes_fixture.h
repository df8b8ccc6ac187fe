// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/cri/backend_router.h"
#include "pkg/cri/relay_fixture.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/cri_client/specs.h"
#include "test/support/fake_runtime/fake_runtime.h"
#include "test/support/status_matchers.h"

namespace resmgr {

// One relay in front of two runtimes: the default one, and one with the handler "kata".
class SeveralRuntimesTest : public RelayTest {
 protected:
  SeveralRuntimesTest() {
    EXPECT_THAT(first_.Start(Path("first.sock")), test::IsOk());
    EXPECT_THAT(second_.Start(Path("second.sock")), test::IsOk());
    thread_.Do([this] {
      backends_ = std::make_unique<Backends>(std::vector<Backends::Backend>{
          {.name = "default", .socket = Path("first.sock")},
          {.name = "kata", .socket = Path("second.sock"), .handlers = {"kata"}}});
      router_ = std::make_unique<BackendRouter>(thread_.loop(), thread_.flushes(), *backends_);
    });
    Serve();
    client_ = std::make_unique<test::CriClient>(RelaySocket());
  }
  ~SeveralRuntimesTest() override {
    client_.reset();
    StopRelay();
    thread_.Do([this] {
      router_.reset();
      backends_.reset();
    });
  }

  // Starts a new relay, to which former ids are unknown.
  void Serve() {
    StartRelay({.runtime_socket = Path("first.sock"), .image_socket = Path("first.sock")});
    thread_.Do([this] { relay_->SetRouter(router_.get()); });
  }
  void ForgetIds() {
    thread_.Do([this] {
      for (const auto kind :
           {IdOwners::Kind::kPodSandbox, IdOwners::Kind::kContainer, IdOwners::Kind::kPodUid}) {
        for (size_t owner = 0; owner < 2; ++owner)
          backends_->owners().SetAll(kind, owner, {}, backends_->owners().BeginList());
      }
    });
  }

  std::string RunPod(const std::string& name, const std::string& handler) {
    const auto pod = client_->RunPod(test::MakeBestEffortPod(name), handler);
    EXPECT_THAT(pod, test::IsOk());
    return pod.value_or("");
  }
  std::string CreateContainer(const std::string& pod) {
    const auto container = client_->CreateContainer(pod, test::MakeBestEffortPod("pod"),
                                                    test::MakeBestEffortContainer("main"));
    EXPECT_THAT(container, test::IsOk());
    return container.value_or("");
  }
  std::vector<std::string> PodIds(const ::runtime::v1::PodSandboxFilter& filter = {}) {
    ::runtime::v1::ListPodSandboxRequest request;
    *request.mutable_filter() = filter;
    ::runtime::v1::ListPodSandboxResponse list;
    EXPECT_TRUE(client_->Unary("ListPodSandbox", request, &list).ok());
    std::vector<std::string> ids;
    for (const auto& pod : list.items())
      ids.push_back(pod.id());
    return ids;
  }
  grpc::Status Ask(const std::string& method) {
    return client_->Call(client_->PathOf(method), {""}).status;
  }
  static size_t Pods(test::FakeRuntime& runtime) {
    return runtime.WithStore([](test::CriStore& store) { return store.sandboxes().size(); });
  }

  test::FakeRuntime first_;
  test::FakeRuntime second_{{.store = {.first_id = 1'000'000}}};
  std::unique_ptr<Backends> backends_;
  std::unique_ptr<BackendRouter> router_;
  std::unique_ptr<test::CriClient> client_;
};

}  // namespace resmgr
