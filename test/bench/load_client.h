// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

namespace resmgr::bench {

// The results of one burst of calls.
struct LoadResult {
  std::vector<std::chrono::nanoseconds> latencies;  // in the order of the answers
  std::chrono::nanoseconds elapsed{0};
  int errors = 0;
  std::string first_error;
  std::vector<std::string> replies;  // only when asked for
};

struct Load {
  std::string path;
  int calls = 0;
  int concurrency = 1;
  // The request of the call with this number, from 0.
  std::function<grpc::ByteBuffer(int)> request = {};
  bool keep_replies = false;
};

// A closed-loop client over one connection, on the thread that calls it. Thread-compatible.
class LoadClient {
 public:
  explicit LoadClient(const std::string& socket_path);
  ~LoadClient();

  LoadResult Run(const Load& load);

 private:
  struct Slot;
  void StartNext(Slot* slot, const Load& load, int index);

  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

}  // namespace resmgr::bench
