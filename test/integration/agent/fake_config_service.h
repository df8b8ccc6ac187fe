// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "pkg/api/config.grpc.pb.h"

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

}  // namespace resmgr::test
