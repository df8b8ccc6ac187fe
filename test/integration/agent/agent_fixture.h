// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "pkg/api/config.grpc.pb.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/api_server/api_server.h"
#include "test/support/containerd/child_process.h"
#include "test/support/wait.h"

namespace resmgr::test {

// A daemon as the agent sees it: takes configuration on a unix socket, remembers it, and rejects a
// configuration that asks for it. Thread-safe.
class FakeConfigService : public v1::Config::Service {
 public:
  using Config = std::map<std::string, std::string>;

  // A configuration whose section "policy" has this in it is rejected with the rest of its text.
  static constexpr char kBad[] = "bad: ";

  explicit FakeConfigService(std::string socket) : socket_(std::move(socket)) {}
  ~FakeConfigService() override { Stop(); }

  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  void Stop() {
    if (server_ == nullptr) return;
    Release();
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }

  grpc::Status SetConfig(grpc::ServerContext* /*context*/, const v1::SetConfigRequest* request,
                         v1::SetConfigReply* reply) override {
    std::unique_lock lock(mutex_);
    node_ = request->node_name();
    received_.emplace_back(request->config().begin(), request->config().end());
    released_.wait(lock, [this] { return !held_; });
    const std::string& policy = received_.back()["policy"];
    if (policy.starts_with(kBad)) reply->set_error(policy.substr(sizeof(kBad) - 1));
    return grpc::Status::OK;
  }

  // Requests from now on get their answers when they are released.
  void Hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    released_.notify_all();
  }

  std::vector<Config> received() const {
    const std::lock_guard lock(mutex_);
    return received_;
  }
  // The section "policy" of the last one, "" before there is any.
  std::string policy() const {
    const std::lock_guard lock(mutex_);
    if (received_.empty()) return "";
    const auto found = received_.back().find("policy");
    return found == received_.back().end() ? "" : found->second;
  }
  std::string node() const {
    const std::lock_guard lock(mutex_);
    return node_;
  }

 private:
  const std::string socket_;
  mutable std::mutex mutex_;
  std::condition_variable released_;
  bool held_ = false;
  std::vector<Config> received_;
  std::string node_;
  std::unique_ptr<grpc::Server> server_;
};

// A real agent process between an API server of the test's own and a fake daemon. The node is
// "n1". The API server runs from the start, the daemon and the agent when the test says so.
class AgentTest : public testing::Test {
 protected:
  static constexpr char kNode[] = "n1";
  static constexpr char kGroupLabel[] = "cri-resource-manager.intel.com/group";
  static constexpr char kNodeMap[] = "cri-resmgr-config.node.n1";
  static constexpr char kDefaultMap[] = "cri-resmgr-config.default";
  // Annotations of the node.
  static constexpr char kStatus[] = "cri-resource-manager.intel.com/config-status";
  static constexpr char kError[] = "cri-resource-manager.intel.com/config-error";

  AgentTest();

  std::string Path(const std::string& name) const { return directory_.File(name); }
  // A kubeconfig with these lines of a cluster and a user, in flow style.
  void WriteKubeconfig(const std::string& cluster_more, const std::string& user) const;
  // Flags that keep an agent within the directory, and from waiting for the sake of a cluster.
  std::vector<std::string> Flags() const;
  void StartAgent(const std::vector<std::string>& more = {});
  // On a machine whose certificate authorities are those in this directory, as `openssl rehash`
  // leaves it. Needs root: the agent gets a mount namespace of its own.
  void StartAgentTrusting(const std::string& system_certificates);
  // Starts both, with the policy "first" in the default map; returns when the daemon has it and all
  // objects are watched: the node, its own map and the default one, and one more for a node in a
  // group.
  void StartAll(int watches = 3);

  void SetPolicy(const std::string& map, const std::string& policy);
  bool DaemonGets(const std::string& policy) {
    return Eventually([&] { return daemon_.policy() == policy; });
  }
  bool NodeSays(std::string_view annotation, const std::string& value) {
    return Eventually([&] { return api_.Annotation(kNode, annotation) == value; });
  }
  bool IsWatching(int watches) {
    return Eventually([&] { return api_.watches() == watches; });
  }
  std::string AgentLog() const { return LastLines(Path("agent.log")); }
  // Exit status of the agent's own -probe.
  int Probe(const std::string& query);

  void Start(const std::vector<std::string>& argv);

  TempDir directory_;
  ApiServer api_;
  FakeConfigService daemon_{Path("config.sock")};
  std::unique_ptr<ChildProcess> agent_;
};

}  // namespace resmgr::test
