/* SPDX-License-Identifier: MIT */
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern "C" double area_of_circle(double radius);
const std::string &name_of(int shape);

int main()
{
    std::printf("%s %.1f; ", name_of(1).c_str(), area_of_circle(5));
    try {
        std::printf("%s", name_of(7).c_str());
    } catch (const std::exception &error) {
        std::printf("caught %s; ", error.what());
    }
    std::mutex mutex;
    long sum = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&] {
            for (int k = 0; k < 1000; k++) {
                std::lock_guard<std::mutex> lock(mutex);
                sum++;
            }
        });
    }
    for (auto &thread : threads) thread.join();
    std::printf("%ld\n", sum);
    return 0;
}
