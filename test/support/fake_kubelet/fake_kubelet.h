// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::test {

// A kubelet as far as its pod-resources socket shows it: v1.PodResourcesLister, on a thread of its
// own. Thread-safe.
class FakeKubelet {
 public:
  enum class Get {
    kThere,     // as kubelets have it since 1.34
    kDisabled,  // by its feature gate
    kMissing,   // as in kubelets before 1.27
  };
  // One entry of a container's devices, as kubelets make it for each device.
  struct Devices {
    std::string resource{};
    std::vector<std::string> ids{};
    std::vector<int64_t> nodes{};
  };

  static StatusOr<std::unique_ptr<FakeKubelet>> Start(const std::string& socket,
                                                      Get get = Get::kThere);
  ~FakeKubelet();
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;

  void Give(const std::string& namespace_name, const std::string& pod, const std::string& container,
            std::vector<Devices> devices);
  // Calls are not answered any more.
  void Hang(bool hangs) { hangs_ = hangs; }
  // The next calls are refused, as too many.
  void RefuseNext(int calls) { refused_ = calls; }
  int gets() const { return gets_; }
  int lists() const { return lists_; }

 private:
  struct Pod {
    std::string namespace_name;
    std::string name;
    std::map<std::string, std::vector<Devices>> containers;
  };

  explicit FakeKubelet(Get get) : get_(get) {}
  UnaryServer::Methods Methods();
  StatusOr<std::string> AnswerGet(const std::string& request);
  std::string AnswerList();
  static std::string Encoded(const Pod& pod);

  const Get get_;
  std::mutex mutex_;
  std::vector<Pod> pods_;
  std::atomic<bool> hangs_ = false;
  std::atomic<int> refused_ = 0;
  std::atomic<int> gets_ = 0;
  std::atomic<int> lists_ = 0;
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  std::unique_ptr<UnaryServer> server_;
  // Calls that are not answered; used on the thread alone.
  std::vector<UnaryServer::Reply> held_;
  std::thread thread_;
};

}  // namespace resmgr::test
