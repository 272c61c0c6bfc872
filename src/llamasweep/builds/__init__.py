"""Which llama.cpp builds exist, how to get one, and which flags each knows. It measures nothing."""
