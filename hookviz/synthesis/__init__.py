"""Make pictures with the network itself: what a unit looks for, and what a layer still knows.

A picture's parameters follow the gradient of a goal; the network is a private replica, and nothing
of it changes. Imports explaining and the rooms below; knows no lens and draws no page.
"""
