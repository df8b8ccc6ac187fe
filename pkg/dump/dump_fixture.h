// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/dump/dumper.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr::dump {

// A dumper with a directory for its files; its log lines are kept, warnings with a leading '!'.
class DumpFixture : public ::testing::Test {
 protected:
  ~DumpFixture() override { dumper_.reset(); }

  std::string PathOf(std::string_view name) const { return directory_.File(std::string(name)); }

  static std::vector<std::string> LinesOf(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
      lines.push_back(line);
    return lines;
  }

  Status Start(Dumper::Options options) {
    auto dumper = Dumper::Create(std::move(options), Sink());
    if (!dumper.ok()) return dumper.status();
    dumper_ = *std::move(dumper);
    return OkStatus();
  }

  Status Reconfigure(Dumper::Options options) {
    RESMGR_ASSIGN_OR_RETURN(Dumper::Settings settings, Dumper::Read(std::move(options)));
    return dumper_->Reconfigure(std::move(settings));
  }

  LogSink Sink() {
    return [this](bool warning, std::string_view line) {
      const std::lock_guard lock(mutex_);
      std::string& kept = log_.emplace_back(warning ? "!" : "");
      kept += line;
    };
  }

  // Ends the dumper and returns all its log lines.
  std::vector<std::string> Log() {
    EXPECT_TRUE(dumper_->Close(std::chrono::seconds(30)));
    return LogSoFar();
  }

  std::vector<std::string> LogSoFar() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  void ClearLog() {
    const std::lock_guard lock(mutex_);
    log_.clear();
  }

  CallRef NewCall(std::string_view path, bool intercepted = false) {
    CallRef call;
    call.id = ++last_call_;
    call.path = path;
    call.intercepted = intercepted;
    call.start = std::chrono::steady_clock::now();
    call.wall_start = std::chrono::system_clock::now();
    return call;
  }

  // Reports a whole unary call.
  template <typename Request, typename Reply>
  void Call(std::string_view path, const Request& request, const Reply& reply,
            bool intercepted = false) {
    const CallRef call = NewCall(path, intercepted);
    dumper_->OnRequest(call, Payload(request.SerializeAsString()));
    dumper_->OnReply(call, Payload(reply.SerializeAsString()));
    dumper_->OnEnd(call, 0, "");
  }

  template <typename Request>
  void FailedCall(std::string_view path, const Request& request, int code, std::string_view message,
                  bool intercepted = false) {
    const CallRef call = NewCall(path, intercepted);
    dumper_->OnRequest(call, Payload(request.SerializeAsString()));
    dumper_->OnEnd(call, code, message);
  }

  TempDir directory_;
  std::unique_ptr<Dumper> dumper_;

 private:
  std::mutex mutex_;
  std::vector<std::string> log_;
  uint64_t last_call_ = 0;
};

inline constexpr std::string_view kVersion = "/runtime.v1.RuntimeService/Version";
inline constexpr std::string_view kCreate = "/runtime.v1.RuntimeService/CreateContainer";
inline constexpr std::string_view kRun = "/runtime.v1.RuntimeService/RunPodSandbox";
inline constexpr std::string_view kStart = "/runtime.v1.RuntimeService/StartContainer";
inline constexpr std::string_view kEvents = "/runtime.v1.RuntimeService/GetContainerEvents";

}  // namespace resmgr::dump
