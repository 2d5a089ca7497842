"""ResNet-50 on handwritten digits: trained by Eyas, and timed on every way that this machine has to run it.

`data` fetches MNIST, `model` says which network it is, `train` compiles the step and runs it, `bench` times, `charts`
draws, `page` writes the tables of docs/experiments/mnist-resnet50.md. `python -m examples.mnist_resnet50` does it all.
"""
