// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/nri/host/session/plugin_port.h"

namespace resmgr::nri::test {

// A plugin without a connection, which answers by the test's functions; an unset one agrees. `told`
// records requests, as "10-a Create main".
class FunctionPort final : public PluginPort {
 public:
  explicit FunctionPort(std::string name, std::vector<std::string>& told, PluginSettings how = {})
      : settings_of(how), name_(std::move(name)), told_(told) {}

  std::function<void(const api::CreateContainerRequest&, Done<api::CreateContainerResponse>)>
      create;
  std::function<void(const api::UpdateContainerRequest&, Done<api::UpdateContainerResponse>)>
      update;
  std::function<void(const api::StopContainerRequest&, Done<api::StopContainerResponse>)> stop;
  std::function<void(const api::ValidateContainerAdjustmentRequest&,
                     Done<api::ValidateContainerAdjustmentResponse>)>
      validate;
  std::function<void(const api::StateChangeEvent&, Done<api::Empty>)> notify;
  std::function<bool(api::Event)> wants = [](api::Event event) {
    return event != api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT;
  };
  PluginSettings settings_of;
  std::chrono::milliseconds timeout{0};  // of the last question

  const std::string& full_name() const override { return name_; }
  const PluginSettings& settings() const override { return settings_of; }
  bool Wants(api::Event event) const override { return wants(event); }

  void Create(std::string encoded, std::chrono::milliseconds time,
              Done<api::CreateContainerResponse> done) override {
    api::CreateContainerRequest request;
    EXPECT_TRUE(request.ParseFromString(encoded));
    Answer("Create " + request.container().name(), create, request, time, std::move(done));
  }
  void Update(const api::UpdateContainerRequest& request, std::chrono::milliseconds time,
              Done<api::UpdateContainerResponse> done) override {
    Answer("Update " + request.container().name(), update, request, time, std::move(done));
  }
  void Stop(const api::StopContainerRequest& request, std::chrono::milliseconds time,
            Done<api::StopContainerResponse> done) override {
    Answer("Stop " + request.container().name(), stop, request, time, std::move(done));
  }
  void UpdatePod(const api::UpdatePodSandboxRequest& request, std::chrono::milliseconds,
                 Done<api::UpdatePodSandboxResponse> done) override {
    told_.push_back(name_ + " UpdatePod " + request.pod().name());
    done(api::UpdatePodSandboxResponse());
  }
  void Validate(const api::ValidateContainerAdjustmentRequest& request,
                std::chrono::milliseconds time,
                Done<api::ValidateContainerAdjustmentResponse> done) override {
    Answer("Validate " + request.container().name(), validate, request, time, std::move(done));
  }
  void End(const Status& why) override {
    told_.push_back(name_ + " End " + std::string(Message(why)));
  }
  void Notify(const api::StateChangeEvent& event, std::chrono::milliseconds time,
              Done<api::Empty> done) override {
    std::string what = api::Event_Name(event.event()).substr(sizeof "EVENT_" - 1);
    what += " " + (event.has_container() ? event.container().name() : event.pod().name());
    Answer(what, notify, event, time, std::move(done));
  }

 private:
  template <typename Request, typename Response>
  void Answer(const std::string& what,
              const std::function<void(const Request&, Done<Response>)>& answer,
              const Request& request, std::chrono::milliseconds time, Done<Response> done) {
    told_.push_back(name_ + " " + what);
    timeout = time;
    if (answer) {
      answer(request, std::move(done));
    } else {
      done(Response());
    }
  }

  const std::string name_;
  std::vector<std::string>& told_;
};

}  // namespace resmgr::nri::test
