// SPDX-License-Identifier: Apache-2.0
// test_gpu [--list] [WORD...] [-WORD...]: runs the tests whose GROUP.NAME holds a WORD (all, without one) and no -WORD, in the order of their
// names, and ends with the line `N passed, M failed`; of a test that needs more GPUs than there are it says `NOT RUN: ...`. On a machine without a GPU it runs none and says `no GPU: K tests not run`.
// Exit status: 0 all passed, or no GPU; 1 one failed, or one did not end within kSecondsATest; 2 no test has such a name.
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "check.hpp"

namespace nanet::check {
namespace {

constexpr unsigned kSecondsATest = 600;  // a kernel that never ends must not stop the machine

struct Test {
  std::string name;
  void (*run)();
};

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

std::mutex failures_mutex;
unsigned failures = 0;     // of the test that runs
const char* running = "";  // its name
std::string left_out;      // why it was not run
const char kTooLong[] = " does not end (a kernel or a thread waits for ever) run it alone, under compute-sanitizer or cuda-gdb\n";

void give_up(int) {  // a signal handler: async-signal-safe calls alone
  const auto written = write(STDERR_FILENO, running, std::strlen(running)) + write(STDERR_FILENO, kTooLong, sizeof(kTooLong) - 1);
  _exit(written > 0 ? 1 : 2);
}

bool chosen(const std::string& name, const std::vector<std::string>& words) {
  bool wanted = std::none_of(words.begin(), words.end(), [](const std::string& word) { return word[0] != '-'; });
  for (const std::string& word : words) {
    if (word[0] == '-' && name.find(word.substr(1)) != std::string::npos) return false;
    if (word[0] != '-' && name.find(word) != std::string::npos) wanted = true;
  }
  return wanted;
}

enum class Outcome { passed, failed, not_run };

Outcome outcome_of(const Test& test) {
  failures = 0;
  left_out.clear();
  running = test.name.c_str();
  const auto begin = std::chrono::steady_clock::now();
  alarm(kSecondsATest);
  try {
    test.run();
  } catch (const std::exception& error) {
    Failure(test.name.c_str(), 0, "it threw") << error.what();
  } catch (...) {
    Failure(test.name.c_str(), 0, "it threw");
  }
  // An error that sticks to the context would be the next test's.
  const cudaError_t left = cudaDeviceSynchronize();
  if (left != cudaSuccess) Failure(test.name.c_str(), 0, "it left an error on the GPU") << cudaGetErrorString(left);
  alarm(0);
  if (failures == 0 && !left_out.empty()) {
    std::printf("NOT RUN: %s %s\n", test.name.c_str(), left_out.c_str());
    return Outcome::not_run;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("[%s] %s (%.2f s)\n", failures == 0 ? " ok " : "FAIL", test.name.c_str(), took.count());
  if (failures > kFailuresShown) std::printf("       %u failures, of which %u are shown\n", failures, kFailuresShown);
  std::fflush(stdout);
  return failures == 0 ? Outcome::passed : Outcome::failed;
}

int run(const std::vector<Test>& wanted) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    std::printf("CUDA says: %s\nno GPU: %zu tests not run\n", cudaGetErrorString(error), wanted.size());
    return 0;
  }
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, 0) == cudaSuccess) {
    std::printf("%s, compute capability %d.%d\n", properties.name, properties.major, properties.minor);
  }
  unsigned passed = 0;
  unsigned failed = 0;
  for (const Test& test : wanted) {
    const Outcome outcome = outcome_of(test);
    passed += outcome == Outcome::passed;
    failed += outcome == Outcome::failed;
  }
  std::printf("%u passed, %u failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

Registration::Registration(const char* group, const char* name, void (*run)()) {
  tests().push_back({std::string(group) + "." + name, run});
}

Failure::~Failure() {
  const std::lock_guard lock(failures_mutex);
  if (++failures > kFailuresShown) return;
  std::printf("%s:%d: %s\n", file_, line_, text_.str().c_str());
}

void not_run(const std::string& reason) { left_out = reason; }

bool under_sanitizer() { return std::getenv("NANET_COMPUTE_SANITIZER") != nullptr; }

}  // namespace nanet::check

int main(int argc, char** argv) {
  using namespace nanet::check;
  std::signal(SIGALRM, &give_up);
  std::vector<std::string> words(argv + 1, argv + argc);
  std::erase(words, "");
  const bool list = std::erase(words, "--list") != 0;
  std::vector<Test> wanted;
  for (const Test& test : tests()) {
    if (chosen(test.name, words)) wanted.push_back(test);
  }
  std::sort(wanted.begin(), wanted.end(), [](const Test& a, const Test& b) { return a.name < b.name; });
  if (wanted.empty()) {
    std::fprintf(stderr, "error: no such test (of %zu, none has a name like that) see test_gpu --list\n", tests().size());
    return 2;
  }
  if (!list) return run(wanted);
  for (const Test& test : wanted) std::printf("%s\n", test.name.c_str());
  return 0;
}
