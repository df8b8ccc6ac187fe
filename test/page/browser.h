// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/base/status.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::test {

// A headless Chromium, driven through chromedriver by the W3C's WebDriver protocol
// (https://www.w3.org/TR/webdriver2/) and, for functions that it lacks, Chromium's DevTools
// commands. Ends with the object. Thread-compatible.
class Browser {
 public:
  using Json = nlohmann::json;

  // kUnavailable: chromedriver or Chromium does not start; the end of its log is part of the text.
  static StatusOr<std::unique_ptr<Browser>> Start();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  Status Open(const std::string& url);
  // The value that a function with this body returns in the page.
  StatusOr<Json> Run(const std::string& body, const Json& arguments = Json::array());
  // Presses and releases keys one after the other, as the focused element gets them. Each is one
  // character or one of kTab and so on.
  Status Press(const std::vector<std::string>& keys);
  Status Click(const std::string& selector);
  // Chooses files in an <input type="file">.
  Status ChooseFiles(const std::string& selector, const std::vector<std::string>& files);
  Status Resize(int width, int height);
  // "light" or "dark", as the reader's system would prefer.
  Status PreferColours(const std::string& scheme);
  // PNG, of what the window shows.
  StatusOr<std::string> Screenshot();

  // The browser's console output since the last call, and the URLs that pages asked for.
  StatusOr<std::vector<std::string>> TakeConsole();
  StatusOr<std::vector<std::string>> TakeRequests();

  static constexpr const char* kTab = "\uE004";
  static constexpr const char* kEnter = "\uE007";
  static constexpr const char* kEscape = "\uE00C";
  static constexpr const char* kEnd = "\uE010";
  static constexpr const char* kHome = "\uE011";
  static constexpr const char* kLeft = "\uE012";
  static constexpr const char* kUp = "\uE013";
  static constexpr const char* kRight = "\uE014";
  static constexpr const char* kDown = "\uE015";

 private:
  Browser() = default;

  Status StartDriver();
  Status StartSession();
  StatusOr<Json> Call(const std::string& method, const std::string& path, const Json& body);
  StatusOr<Json> DevTools(const std::string& command, const Json& parameters);
  StatusOr<std::string> Find(const std::string& selector);
  StatusOr<Json> Log(const std::string& type);

  TempDir directory_;
  std::unique_ptr<ChildProcess> driver_;
  int port_ = 0;
  std::string session_;  // "/session/ID"
};

}  // namespace resmgr::test
