// SPDX-License-Identifier: Apache-2.0
#include "test/bench/load_client.h"

#include <algorithm>
#include <optional>

#include "test/support/fake_runtime/generic_server.h"

namespace resmgr::bench {

namespace {

using Clock = std::chrono::steady_clock;

std::shared_ptr<grpc::Channel> Connect(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace

// One of the calls that run side by side; used again when it ended.
struct LoadClient::Slot {
  std::optional<grpc::ClientContext> context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;
  Clock::time_point start;
};

LoadClient::LoadClient(const std::string& socket_path)
    : channel_(Connect(socket_path)), stub_(channel_) {}

LoadClient::~LoadClient() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void LoadClient::StartNext(Slot* slot, const Load& load, int index) {
  slot->context.emplace();
  slot->start = Clock::now();
  slot->reader = stub_.PrepareUnaryCall(&*slot->context, load.path, load.request(index), &queue_);
  slot->reader->StartCall();
  slot->reader->Finish(&slot->reply, &slot->status, slot);
}

LoadResult LoadClient::Run(const Load& load) {
  LoadResult result;
  result.latencies.reserve(static_cast<size_t>(load.calls));
  std::vector<Slot> slots(static_cast<size_t>(std::min(load.concurrency, load.calls)));
  const Clock::time_point start = Clock::now();
  int started = 0;
  for (Slot& slot : slots)
    StartNext(&slot, load, started++);
  for (int ended = 0; ended < load.calls; ++ended) {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    auto* slot = static_cast<Slot*>(tag);
    result.latencies.push_back(Clock::now() - slot->start);
    if (!slot->status.ok()) {
      if (result.errors++ == 0) result.first_error = slot->status.error_message();
    }
    if (load.keep_replies) result.replies.push_back(test::ToBytes(slot->reply));
    slot->reply.Clear();
    if (started < load.calls) StartNext(slot, load, started++);
  }
  result.elapsed = Clock::now() - start;
  return result;
}

}  // namespace resmgr::bench
